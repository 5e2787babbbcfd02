package import HTTPWire

/// A request of the gateway's own.
package struct HTTPRequest: Sendable {
    package var method: Method
    /// In origin-form: path and query, percent-encoded.
    package var target: String
    /// The value of Host.
    package var authority: String
    /// Names and values. The client writes Host, Connection and the fields that frame the content.
    package var fields: [(name: String, value: String)] = []
    package var content: [UInt8] = []
    /// Whether the content goes in two chunks, without its length.
    package var isChunked = false

    package init(_ method: Method, _ target: String, authority: String) {
        self.method = method
        self.target = target
        self.authority = authority
    }

    /// Head and content; `nil` when the target is invalid.
    func bytes(closes: Bool) -> [UInt8]? {
        let isTarget =
            target.utf8.first == UInt8(ascii: "/")
            && target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }
        guard isTarget else { return nil }
        var bytes = Array("\(method.rawValue) \(target) HTTP/1.1\r\n".utf8)
        HeadWriter.field("Host", text: authority, into: &bytes)
        for (name, value) in fields where !Self.isOwn(name) {
            HeadWriter.field(text: Array(name.utf8), Array(value.utf8), into: &bytes)
        }
        if isChunked {
            HeadWriter.field("Transfer-Encoding", "chunked", into: &bytes)
        } else if method == .post || method == .put || !content.isEmpty {
            HeadWriter.field("Content-Length", UInt64(content.count), into: &bytes)
        }
        if closes { HeadWriter.field("Connection", "close", into: &bytes) }
        HeadWriter.endHead(into: &bytes)
        return bytes + (isChunked ? chunks : content)
    }

    private var chunks: [UInt8] {
        let half = content.count / 2
        let pieces = [content.prefix(half), content.dropFirst(half)].filter { !$0.isEmpty }
        return pieces.flatMap { piece in
            Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + Array("\r\n".utf8)
        } + Array("0\r\n\r\n".utf8)
    }

    private static func isOwn(_ name: String) -> Bool {
        ["connection", "content-length", "host", "transfer-encoding", "upgrade"]
            .contains(name.lowercased())
    }
}

/// A whole response.
package struct HTTPResponse: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        package let name: String
        package let value: String
    }

    package let status: Int
    /// In the order in which they came.
    package let fields: [Field]
    package var content: [UInt8] = []
    package var trailers: [Field] = []

    static func fields(_ section: FieldSection, _ bytes: Span<UInt8>) -> [Field] {
        func text(_ range: Range<Int>) -> String {
            bytes.extracting(range).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        }
        return section.fields.map { Field(name: text($0.name), value: text($0.value)) }
    }

    static func fields(_ trailers: TrailerSection) -> [Field] {
        let bytes = trailers.bytes
        return fields(trailers.fields, bytes.span)
    }

    /// The value of the first field with this name, without regard to case.
    package func field(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}
