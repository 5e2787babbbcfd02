import Foundation

/// Where a request goes, as rules look at it: host and path segments.
struct RequestPlace: Hashable, Sendable {
    /// In lower case, without port and final dot; an address in its shortest spelling, that of IPv6
    /// in brackets.
    let host: String
    /// Between slashes, percent-decoded once; none for `/`, an empty last one for `/v1/`.
    let segments: [[UInt8]]

    init(host: String, path: String) {
        self.host = Self.host(host)
        segments = Self.parts(path.utf8).map(Self.decoded)
    }

    /// `nil` for a URL without a host.
    init?(_ url: URL) {
        // Not URL's own host, which turns `xn--` back into letters.
        let text = url.absoluteURL.absoluteString[...]
        guard let authority = Self.authority(of: text) else { return nil }
        let host = authority[(authority.lastIndex(of: "@") ?? authority.startIndex)...]
            .drop { $0 == "@" }
        guard !host.isEmpty else { return nil }
        self.init(host: String(host), path: url.path(percentEncoded: true))
    }

    /// What stands between `://` and the path; `nil` for a URL without it.
    static func authority(of text: Substring) -> Substring? {
        guard let slashes = text.firstRange(of: "://") else { return nil }
        return text[slashes.upperBound...].prefix { !"/?#".contains($0) }
    }

    /// A host in the one spelling that is compared. A pattern with a `*` stays as it is.
    static func host(_ text: String) -> String {
        var host = text.lowercased()
        if host.hasPrefix("["), let end = host.lastIndex(of: "]") {
            let address = String(host[host.index(after: host.startIndex)..<end])
            var bytes = in6_addr()
            guard inet_pton(AF_INET6, address, &bytes) == 1 else { return "[\(address)]" }
            var name = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            guard inet_ntop(AF_INET6, &bytes, &name, socklen_t(name.count)) != nil else {
                return "[\(address)]"
            }
            let characters = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            return "[\(String(decoding: characters, as: UTF8.self))]"
        }
        if let colon = host.lastIndex(of: ":") { host = String(host[..<colon]) }
        return host.hasSuffix(".") && host.count > 1 ? String(host.dropLast()) : host
    }

    /// What stands between slashes, the first one apart; nothing for `/`.
    static func parts(_ path: String.UTF8View) -> [Substring.UTF8View] {
        let slash = UInt8(ascii: "/")
        let rest = path.first == slash ? path.dropFirst() : path[...]
        return rest.isEmpty ? [] : rest.split(separator: slash, omittingEmptySubsequences: false)
    }

    /// A segment's bytes, percent-decoded once. An escape that is none stays as it is.
    static func decoded(_ text: Substring.UTF8View) -> [UInt8] {
        let text = Array(text)
        var bytes: [UInt8] = []
        var index = 0
        while index < text.count {
            if text[index] == UInt8(ascii: "%"), index + 2 < text.count,
                let high = digit(text[index + 1]), let low = digit(text[index + 2])
            {
                bytes.append(high << 4 | low)
                index += 3
            } else {
                bytes.append(text[index])
                index += 1
            }
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
