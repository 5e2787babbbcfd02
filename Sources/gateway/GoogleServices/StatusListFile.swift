internal import KeyAttestation

/// The copy of a list on disk: lines about it, a blank line, and the text as it came. Sets of keys
/// of other issuers are kept in the same form, with another first line.
///
///     portcullis-status-list 1
///     url https://android.googleapis.com/attestation/status
///     date 1764115200
///     etag "abc"
///
///     {"entries": …
package struct StatusListFile: Hashable, Sendable {
    /// The longest file.
    package static let bytesMax = StatusList.bytesMax + 4_096
    /// The first line of a copy of the status list.
    package static let listTitle = "portcullis-status-list 1"

    /// The first line, which says what is copied.
    package var title: String

    /// From where it came.
    package var url: String
    /// Second of Unix time at which Google vouched for it.
    package var date: Int64
    package var tag: String?
    /// The list, as it came.
    package var text: [UInt8]

    package init(
        title: String = listTitle,
        url: String,
        date: Int64,
        tag: String?,
        text: [UInt8]
    ) {
        self.title = title
        self.url = url
        self.date = date
        self.tag = tag
        self.text = text
    }

    /// Reads a file; `nil` for one that ``bytes`` did not write.
    package init?(_ bytes: [UInt8], title: String = listTitle) {
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
        let tag = value("etag").flatMap { StatusListReply.isTag($0) ? $0 : nil }
        self.init(title: title, url: url, date: date, tag: tag, text: Array(rest))
    }

    /// The content of the file.
    package var bytes: [UInt8] {
        let tag = tag.map { "etag \($0)\n" } ?? ""
        return Array("\(title)\nurl \(url)\ndate \(date)\n\(tag)\n".utf8) + text
    }

    /// The list; `nil` where the text is none.
    package func known() -> KnownStatusList? {
        guard let list = try? StatusList(json: text) else { return nil }
        return KnownStatusList(list, date: date, source: .copy, tag: tag)
    }
}
