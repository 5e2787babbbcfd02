import Cryptography
import Encodings
import HTTPWire
package import Rules
import Verification

/// Takes finished lines of the access log, and the number of dropped ones.
package typealias LogSink = @Sendable (_ lines: [UInt8], _ dropped: UInt64) -> Void

/// The access log of one event loop: gathers a line for each request that has one, and passes the
/// lines on.
///
/// It writes no secrets: only the short hash of a key, and no query of a target.
struct AccessLog {
    /// The most gathered bytes; further lines are dropped. A log that can't keep up must not stop
    /// the gateway.
    static let pendingMax = 1 << 20

    var sampler = LogSampler()
    var refusals = RefusalLines()
    /// Takes the gathered lines.
    var sink: LogSink = { _, _ in }
    /// Called with the number of refusals that have left no line.
    var refusalsLeftOut: ((UInt64) -> Void)?

    /// The number of lines dropped since ``take()``.
    private(set) var dropped: UInt64 = 0
    private var json = JSONWriter()
    private var lineStart = 0
    /// Lines of the combined format.
    private var combined: [UInt8] = []
    /// The second of the last line, `2026-11-22T19:30:12`.
    private var stamp: (second: Int64, text: String) = (.min, "")

    /// Begins a line. The other members follow, then ``end()``.
    mutating func begin() { json.beginObject() }

    /// Ends a line; drops it when too much is pending already.
    mutating func end() {
        json.endObject()
        json.endLine()
        if json.bytes.count > Self.pendingMax {
            dropped &+= 1
            json.truncate(to: lineStart)
        }
        lineStart = json.bytes.count
    }

    /// Writes a line of the combined format; drops it when too much is pending already.
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

    /// Passes the gathered lines on.
    mutating func pass() {
        if refusals.leftOut > 0 { refusalsLeftOut?(refusals.take()) }
        guard !json.bytes.isEmpty || !combined.isEmpty || dropped > 0 else { return }
        let (lines, dropped) = take()
        sink(lines, dropped)
    }

    /// Hands over the gathered lines, and the number of dropped ones.
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

    /// Bytes that a client sent. They may be no UTF-8.
    mutating func member(_ name: StaticString, bytes: [UInt8]) {
        json.name(name)
        json.value(latin1: bytes.span)
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

/// The format of the access log, and which requests have a line.
package struct AccessLogRule: Hashable, Sendable {
    package enum Form: String, CaseIterable, Sendable {
        /// One JSON object a line.
        case json
        /// The combined format of Apache and nginx.
        case combined
        /// The same, and after it times, and what the client claims: `name=value`.
        case combinedTimes = "combined-times"
    }

    /// How a line of JSON says when the request ended.
    package enum Time: String, CaseIterable, Sendable {
        case milliseconds = "ms"
        case iso8601
    }

    /// `format`: default json.
    package var form = Form.json
    /// `time`: in lines of JSON. Default ms.
    package var time = Time.milliseconds
    /// `sample`: the share of admitted requests that have a line. Default 100%. All others always
    /// have one.
    package var sample = Share.whole
    /// `address_refusals`: lines a second about refused requests of one address, on each event
    /// loop; ten times as many at once. Further ones are omitted and counted. Default 100/s,
    /// 1/s…1000000/s or `off`.
    package var addressRefusals: Int? = 100

    package init() {}

    var refusals: TokenRate? { addressRefusals.map { TokenRate($0, burst: $0 * 10) } }

    /// Whether each request has a line.
    var isWhole: Bool { sample == .whole }
}

/// Picks a share of requests, evenly spread.
struct LogSampler {
    private var credit = 0

    /// Whether the next request has a line.
    mutating func takes(_ share: Share) -> Bool {
        credit += share.millionths
        guard credit >= Share.whole.millionths else { return false }
        credit -= Share.whole.millionths
        return true
    }
}

/// A line in the combined format of Apache and nginx:
/// `client - - [22/Nov/2026:19:30:12 +0000] "GET /path HTTP/1.1" 200 17 "referer" "agent"`.
struct CombinedLine {
    /// Further members at its end, `name=value`, without spaces.
    var members: [String] = []
    var client = ""
    /// Milliseconds since 1970.
    var at: Int64 = 0
    var spoken = ClientProtocol.http11
    var method: [UInt8] = []
    var path: [UInt8] = []
    var status = 0
    var bytes: UInt64 = 0
    var referer: [UInt8] = []
    var agent: [UInt8] = []

    func append(to out: inout [UInt8]) {
        out += Array("\(client) - - [".utf8)
        // `Sun, 22 Nov 2026 19:30:12 GMT`: the same parts in another order.
        let date = HTTPDate.bytes(unixSeconds: at / 1000)
        out += date[5..<7]
        out.append(UInt8(ascii: "/"))
        out += date[8..<11]
        out.append(UInt8(ascii: "/"))
        out += date[12..<16]
        out.append(UInt8(ascii: ":"))
        out += date[17..<25]
        out += Array(" +0000] \"".utf8)
        if method.isEmpty {
            out.append(UInt8(ascii: "-"))
        } else {
            Self.append(method, to: &out)
            out.append(UInt8(ascii: " "))
            Self.append(path.isEmpty ? [UInt8(ascii: "/")] : path, to: &out)
            out += Array(" \(version)".utf8)
        }
        // Three digits also without an answer: readers of this format require them.
        let code = status == 0 ? "000" : String(status)
        out += Array("\" \(code) \(bytes == 0 ? "-" : String(bytes)) \"".utf8)
        // A query may hold secrets that don't belong in logs.
        let shown = referer.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        Self.append(shown.isEmpty ? [UInt8(ascii: "-")] : Array(shown), to: &out)
        out += Array("\" \"".utf8)
        Self.append(agent.isEmpty ? [UInt8(ascii: "-")] : agent, to: &out)
        out.append(UInt8(ascii: "\""))
        for member in members { out += Array(" \(member)".utf8) }
        out.append(UInt8(ascii: "\n"))
    }

    /// In nginx's form.
    private var version: String {
        switch spoken {
        case .http10: "HTTP/1.0"
        case .http11: "HTTP/1.1"
        case .http2: "HTTP/2.0"
        }
    }

    /// Escapes as Apache does, so that a client's bytes can't end a text or a line.
    private static func append(_ bytes: [UInt8], to out: inout [UInt8]) {
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                out.append(UInt8(ascii: "\\"))
                out.append(byte)
            case 0x20...0x7E: out.append(byte)
            default: out += Array("\\x\(Hex.text([byte]))".utf8)
            }
        }
    }
}

/// The number of lines about refused requests that each address has left, on one event loop.
///
/// Addresses share 4,096 places by hash, 16 bytes each. Two addresses with one place share its
/// rate. The hash has a secret key, so that an attacker can't aim at another address's place.
struct RefusalLines {
    private struct Place {
        /// The bucket of ``TokenRate``.
        var bucket: UInt64 = 0
        /// Lines that were omitted since the last one.
        var leftOut: UInt64 = 0
    }

    private static let count = 4_096
    private var places: [Place] = []

    /// Lines that were omitted since ``take()``.
    private(set) var leftOut: UInt64 = 0

    /// A request of an address was refused.
    ///
    /// - Parameters:
    ///   - hash: the hash of the address.
    ///   - rate: the rate of lines of an address, and its burst.
    ///   - now: monotonic nanoseconds.
    /// - Returns: the number of lines omitted before this one; `nil` when this one is omitted, too.
    mutating func next(_ hash: UInt64, _ rate: TokenRate, now: UInt64) -> UInt64? {
        // Made on first use: the operators' event loop refuses no requests.
        if places.isEmpty { places = Array(repeating: Place(), count: Self.count) }
        let index = Int(truncatingIfNeeded: hash >> 32) & (Self.count - 1)
        guard rate.take(from: &places[index].bucket, now: now) == nil else {
            places[index].leftOut &+= 1
            leftOut &+= 1
            return nil
        }
        defer { places[index].leftOut = 0 }
        return places[index].leftOut
    }

    /// Hands over the number of omitted lines.
    mutating func take() -> UInt64 {
        defer { leftOut = 0 }
        return leftOut
    }
}
