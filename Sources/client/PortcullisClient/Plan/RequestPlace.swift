import Foundation

/// Where a request goes, as rules look at it: host and path segments.
struct RequestPlace: Hashable, Sendable {
    /// In lower case, without port, final dot and the brackets of an IPv6 address.
    let host: String
    /// Between slashes, percent-decoded; one empty segment for `/`.
    let segments: [[UInt8]]

    /// `nil` for a URL without a host.
    init?(_ url: URL) {
        guard let host = url.host(percentEncoded: false)?.lowercased(), !host.isEmpty else {
            return nil
        }
        self.host = host.hasSuffix(".") ? String(host.dropLast()) : host
        let path = url.path(percentEncoded: true).utf8
        segments = (path.first == UInt8(ascii: "/") ? path.dropFirst() : path[...])
            .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map(Self.decoded)
    }

    /// A segment's bytes, percent-decoded once. An escape that is none stays as it is.
    static func decoded(_ text: Substring.UTF8View) -> [UInt8] {
        var bytes: [UInt8] = []
        var index = text.startIndex
        while index < text.endIndex {
            let byte = text[index]
            let rest = text[index...].dropFirst().prefix(2)
            if byte == UInt8(ascii: "%"), rest.count == 2,
                let value = UInt8(String(Substring(rest)), radix: 16),
                rest.first != UInt8(ascii: "+")
            {
                bytes.append(value)
                index = rest.endIndex
            } else {
                bytes.append(byte)
                index = text.index(after: index)
            }
        }
        return bytes
    }
}
