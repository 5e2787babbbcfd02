import HTTPWire

/// A request of the gateway's own.
package struct HTTPRequest: Sendable {
    package enum Verb: String, Sendable {
        case get = "GET"
        case head = "HEAD"
        case post = "POST"
        case put = "PUT"

        var method: Method {
            switch self {
            case .get: .get
            case .head: .head
            case .post: .post
            case .put: .put
            }
        }
    }

    package var verb: Verb
    /// In origin-form: path and query, percent-encoded.
    package var target: String
    /// The value of Host.
    package var authority: String
    /// Names and values. Host, Connection and what frames the content are the client's.
    package var fields: [(name: String, value: String)] = []
    package var content: [UInt8] = []

    package init(_ verb: Verb, _ target: String, authority: String) {
        self.verb = verb
        self.target = target
        self.authority = authority
    }

    /// Head and content; `nil` when the target is none.
    func bytes(closes: Bool) -> [UInt8]? {
        let isTarget =
            target.utf8.first == UInt8(ascii: "/")
            && target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }
        guard isTarget else { return nil }
        var bytes = Array("\(verb.rawValue) \(target) HTTP/1.1\r\n".utf8)
        HeadWriter.field("Host", text: authority, into: &bytes)
        for (name, value) in fields where !Self.isOwn(name) {
            HeadWriter.field(text: Array(name.utf8), Array(value.utf8), into: &bytes)
        }
        if verb == .post || verb == .put || !content.isEmpty {
            HeadWriter.field("Content-Length", UInt64(content.count), into: &bytes)
        }
        if closes { HeadWriter.field("Connection", "close", into: &bytes) }
        HeadWriter.endHead(into: &bytes)
        return bytes + content
    }

    private static func isOwn(_ name: String) -> Bool {
        ["connection", "content-length", "host", "transfer-encoding", "upgrade"]
            .contains(name.lowercased())
    }
}
