/// When something is fetched again in the background: when the last answer is no longer fresh,
/// within bounds, and after a failure by a growing pause.
///
/// One call at a time, so there is neither a queue nor a breaker: the pause is both.
package struct FetchSchedule: Sendable {
    /// The bounds of the configuration.
    package struct Bounds: Hashable, Sendable {
        /// The shortest time from one answer to the next request.
        package var least: Duration
        package var most: Duration

        package init(least: Duration, most: Duration) {
            self.least = least
            self.most = most
        }
    }

    /// The pause after a failure, by the number of consecutive ones.
    package static let pauses = BackOff(first: .seconds(10), most: .seconds(600))
    /// A request comes earlier by up to this share of its time, so that gateways that started
    /// together do not ask together.
    private static let spread: UInt64 = 10

    package var bounds: Bounds
    private var failures = 0

    package init(_ bounds: Bounds) { self.bounds = bounds }

    /// The time until the first request.
    ///
    /// - age: seconds since the other party vouched for the copy on disk; `nil` without one. A
    ///   gateway that restarts again and again does not ask each time.
    package func first(age: Int64?) -> Duration {
        guard let age, age >= 0 else { return .zero }
        return max(bounds.least - .seconds(age), .zero)
    }

    /// The time until the next request, after an answer.
    ///
    /// - freshness: how long the answer is fresh; `nil` where it does not say.
    package mutating func answered(fresh freshness: Duration?, random: UInt64) -> Duration {
        failures = 0
        let pause = max(bounds.least, min(freshness ?? bounds.most, bounds.most))
        let milliseconds = UInt64(clamping: pause.components.seconds) * 1_000
        let earlier = random % (milliseconds / Self.spread + 1)
        return max(pause - .milliseconds(Int64(clamping: earlier)), bounds.least)
    }

    /// The time until the next request, after a failure.
    ///
    /// - retryAfter: the seconds that the answer asks for.
    package mutating func failed(retryAfter: Int?, random: UInt64) -> Duration {
        failures += 1
        let own = Self.pauses.pause(after: failures, random: random)
        let asked = Duration.seconds(max(retryAfter ?? 0, 0))
        return min(max(own, asked), max(bounds.most, bounds.least))
    }
}

/// What the fields of an answer say of what was fetched.
package struct FetchedFields: Sendable {
    /// The fields that are read.
    package static let names = ["cache-control", "age", "etag"]
    /// The longest tag that is kept, in bytes.
    package static let tagBytesMax = 256

    private let fields: [String: String]

    /// - fields: those of ``names`` that the answer has.
    package init(_ fields: [String: String]) { self.fields = fields }

    /// The `ETag`; `nil` where there is none, or none that can be sent back.
    package var tag: String? { fields["etag"].flatMap { Self.isTag($0) ? $0 : nil } }

    /// RFC 9110 §8.8.3: visible characters in quotation marks.
    static func isTag(_ text: String) -> Bool {
        text.utf8.count <= tagBytesMax && text.hasSuffix("\"")
            && (text.hasPrefix("\"") || text.hasPrefix("W/\""))
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// Seconds that the answer lay in caches (RFC 9111 §5.1).
    package var age: Int64 {
        fields["age"].flatMap { Int64($0.filter { $0 != " " }) }.map { max($0, 0) } ?? 0
    }

    /// How long the answer is fresh: `Cache-Control: max-age` less `Age` (RFC 9111 §4.2); `nil`
    /// where it does not say.
    package var freshness: Duration? {
        let directives = (fields["cache-control"] ?? "").lowercased().split(separator: ",").map {
            $0.filter { !$0.isWhitespace && $0 != "\"" }
        }
        if directives.contains("no-store") || directives.contains("no-cache") { return .zero }
        let seconds = directives.lazy.filter { $0.hasPrefix("max-age=") }
            .compactMap { Int64($0.dropFirst("max-age=".count)) }.first
        return seconds.map { .seconds(max($0 - min(age, $0), 0)) }
    }
}

/// The copy on disk of what was fetched: lines about it, a blank line, and the text as it came.
///
///     portcullis-status-list 1
///     url https://android.googleapis.com/attestation/status
///     date 1764115200
///     etag "abc"
///
///     {"entries": …
package struct FetchedCopy: Hashable, Sendable {
    /// The most bytes of the lines before the text.
    package static let headBytesMax = 4_096

    /// The first line, which says what is copied.
    package var title: String

    /// From where it came.
    package var url: String
    /// Second of Unix time at which the other party vouched for it.
    package var date: Int64
    package var tag: String?
    package var text: [UInt8]

    package init(title: String, url: String, date: Int64, tag: String?, text: [UInt8]) {
        self.title = title
        self.url = url
        self.date = date
        self.tag = tag
        self.text = text
    }

    /// Reads a file; `nil` for one that ``bytes`` did not write.
    package init?(_ bytes: [UInt8], title: String) {
        let feed = UInt8(ascii: "\n")
        var rest = bytes[...]
        var lines: [String] = []
        while let end = rest.firstIndex(of: feed), lines.count <= 8 {
            let line = String(decoding: rest[..<end], as: UTF8.self)
            rest = rest[(end + 1)...]
            if line.isEmpty { break }
            lines.append(line)
        }
        guard lines.first == title else { return nil }
        func value(_ name: String) -> String? {
            lines.first { $0.hasPrefix(name + " ") }.map { String($0.dropFirst(name.count + 1)) }
        }
        guard let url = value("url"), let date = value("date").flatMap({ Int64($0) }) else {
            return nil
        }
        let tag = value("etag").flatMap { FetchedFields.isTag($0) ? $0 : nil }
        self.init(title: title, url: url, date: date, tag: tag, text: Array(rest))
    }

    /// The content of the file.
    package var bytes: [UInt8] {
        let tag = tag.map { "etag \($0)\n" } ?? ""
        return Array("\(title)\nurl \(url)\ndate \(date)\n\(tag)\n".utf8) + text
    }
}
