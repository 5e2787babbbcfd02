import Encodings
import HTTPWire
import Rules

/// Forms of texts that keys of several sections have: the text as it is used, or `nil`.
package enum TextForm {
    /// The name of a field in lower case; `nil` when it is no token (RFC 9110 §5.6.2) or has an
    /// underscore, which many servers can't tell from a hyphen.
    package static func fieldName(_ text: String) -> String? {
        let bytes = Array(text.lowercased().utf8)
        let isToken = bytes.allSatisfy { $0.isAlphanumeric || "!#$%&'*+-.^`|~".utf8.contains($0) }
        return isToken && (1...256).contains(bytes.count) ? text.lowercased() : nil
    }

    /// A host name or an IP address, with or without a port.
    package static func host(_ text: String) -> String? {
        if HostPattern(text: text) != nil, !text.contains("*") { return text }
        return ServerAddress(text: text, allowsPortZero: false).flatMap { $0.isUnix ? nil : text }
    }

    /// A path of plain segments without a slash at its end.
    package static func plainPath(_ text: String) -> String? {
        guard let pattern = try? PathPattern(text), !pattern.hasRest, text != "/",
            !text.contains("*"), !text.contains("%"), !text.contains(";"), !text.hasSuffix("/")
        else { return nil }
        return text
    }

    /// 1 to `most` visible characters of ASCII.
    package static func visible(_ text: String, most: Int) -> String? {
        (1...most).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            ? text : nil
    }
}

extension Int {
    /// Reads 1 to 18 decimal digits, and nothing else.
    package init?(digits text: some StringProtocol) {
        guard (1...18).contains(text.utf8.count),
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        self.init(text)
    }
}
