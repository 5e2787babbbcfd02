import Cryptography
import HTTPWire
import JSONText

/// Writes a line for each request, into memory; the owner takes what has gathered.
///
/// Nothing secret is written: of a key only its short hash, of a target no query.
struct AccessLog {
    /// Bytes that gather before lines are dropped: a log that can't keep up must not stop the
    /// gateway.
    static let pendingMax = 1 << 20

    /// Lines that were dropped since ``take()``.
    private(set) var dropped: UInt64 = 0
    private var json = JSONWriter()
    private var lineStart = 0
    /// Lines of the combined format.
    private var combined: [UInt8] = []
    /// The second of the last line, `2026-11-22T19:30:12`.
    private var stamp: (second: Int64, text: String) = (.min, "")

    /// Whether nothing has gathered.
    var isEmpty: Bool { json.bytes.isEmpty && combined.isEmpty }

    /// Begins a line. The other members follow, then ``end()``.
    mutating func begin() { json.beginObject() }

    /// Ends a line; forgets it when too much is pending already.
    mutating func end() {
        json.endObject()
        json.endLine()
        if json.bytes.count > Self.pendingMax {
            dropped &+= 1
            json.truncate(to: lineStart)
        }
        lineStart = json.bytes.count
    }

    /// Writes a line of the combined format; forgets it when too much is pending already.
    mutating func write(_ line: CombinedLine) {
        guard combined.count < Self.pendingMax else {
            dropped &+= 1
            return
        }
        line.append(to: &combined)
    }

    /// When the request ended.
    mutating func time(_ milliseconds: Int64, as time: AccessLogRule.Time) {
        switch time {
        case .milliseconds: member("time_ms", milliseconds)
        case .iso8601:
            let second = milliseconds / 1000
            if second != stamp.second {
                stamp = (second, String(UnixTime(seconds: second).iso8601.dropLast()))
            }
            let fraction = String(milliseconds % 1000 + 1000).dropFirst()
            member("time", "\(stamp.text).\(fraction)Z")
        }
    }

    /// Hands over what has gathered, and how many lines were dropped.
    mutating func take() -> (lines: [UInt8], dropped: UInt64) {
        defer {
            dropped = 0
            lineStart = 0
            combined = []
        }
        return (combined.isEmpty ? json.take() : json.take() + combined, dropped)
    }

    mutating func member(_ name: StaticString, _ value: String) {
        json.name(name)
        json.value(value)
    }

    /// Bytes that a client sent, which may be no UTF-8.
    mutating func member(_ name: StaticString, octets: [UInt8]) {
        json.name(name)
        json.value(latin1: octets.span)
    }

    mutating func member(_ name: StaticString, _ id: RequestID) {
        json.name(name)
        json.value(latin1: id.bytes.span.extracting(0..<id.count))
    }

    mutating func member(_ name: StaticString, _ value: some BinaryInteger) {
        json.name(name)
        json.value(Int64(clamping: value))
    }

    mutating func member(_ name: StaticString, _ value: Bool) {
        json.name(name)
        json.value(value)
    }
}
