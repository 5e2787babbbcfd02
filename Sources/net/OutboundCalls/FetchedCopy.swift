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
