package import Encodings

/// The message by which Envoy asks about a request over gRPC. A test changes what it needs.
package struct CheckMessage {
    package var method = "GET"
    package var path = "/open"
    package var host = "a.example"
    package var scheme = "http"
    package var query = ""
    package var fragment = ""
    /// Header lines beside the pseudo-fields.
    package var fields: [(name: String, value: [UInt8])] = []
    /// The pseudo-fields as Envoy repeats them; `nil` for those of the request.
    package var pseudo: [(name: String, value: String)]?
    /// `encode_raw_headers`.
    package var isRaw = true
    /// `raw_body`, and `body`.
    package var content: [UInt8] = []
    package var text: [UInt8] = []
    /// Envoy says with content whether it is a part.
    package var partial: String?
    /// The peer of the connection on which Envoy got the request.
    package var source: String?
    /// Fields of later versions.
    package var unknown = false

    package init(_ method: String, _ path: String, _ fields: [(String, String)] = []) {
        self.method = method
        self.path = path
        self.fields = fields.map { (name: $0.0, value: Array($0.1.utf8)) }
    }

    /// As Envoy asks about a request with content.
    package init(_ method: String, _ path: String, content: [UInt8]) {
        self.init(method, path)
        self.content = content
        if !content.isEmpty { partial = "false" }
    }

    package var bytes: [UInt8] {
        var message = ProtobufWriter()
        if unknown { message.field(200, 7) }
        message.message(1) { attributes in
            if let source {
                attributes.message(1) { peer in
                    peer.message(1) { address in
                        address.message(1) { socket in
                            socket.field(1, 0)
                            socket.field(2, source.utf8)
                            socket.field(3, 4_000)
                        }
                    }
                }
            }
            attributes.message(4) { request in
                request.message(1) { $0.field(1, 1_700_000_000) }
                request.message(2) { writeRequest(&$0) }
            }
            attributes.message(11) { _ in }
        }
        return message.bytes
    }

    private var lines: [(name: String, value: [UInt8])] {
        let own = [(":authority", host), (":path", path), (":method", method), (":scheme", scheme)]
        let ends = partial.map { [(name: "x-envoy-auth-partial-body", value: Array($0.utf8))] }
        return (pseudo ?? own).map { (name: $0.0, value: Array($0.1.utf8)) } + fields + (ends ?? [])
    }

    private func writeRequest(_ http: inout ProtobufWriter) {
        http.field(1, "1234".utf8)
        http.field(2, method.utf8)
        if !isRaw { for line in lines { http.message(3) { write(line, 2, &$0) } } }
        http.field(4, path.utf8)
        http.field(5, host.utf8)
        http.field(6, scheme.utf8)
        if !query.isEmpty { http.field(7, query.utf8) }
        if !fragment.isEmpty { http.field(8, fragment.utf8) }
        http.field(9, UInt64(content.count))
        http.field(10, "HTTP/1.1".utf8)
        if !text.isEmpty { http.field(11, text) }
        if !content.isEmpty { http.field(12, content) }
        if isRaw {
            http.message(13) { map in
                for line in lines { map.message(1) { write(line, 3, &$0) } }
            }
        }
        if unknown { http.message(99) { $0.field(1, "later".utf8) } }
    }

    private func write(
        _ line: (name: String, value: [UInt8]),
        _ number: UInt64,
        _ header: inout ProtobufWriter
    ) {
        header.field(1, line.name.utf8)
        header.field(number, line.value)
    }

    /// A message with the prefix that it has in a call.
    package static func framed(_ message: [UInt8]) -> [UInt8] {
        let count = UInt32(message.count)
        return [0] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) } + message
    }
}

/// The message by which the gateway answers such a question.
package struct CheckVerdict: Equatable {
    package var code: UInt64 = 0
    /// The status of a denied response; `nil` where the request is allowed.
    package var status: UInt64?
    package var content: [UInt8] = []
    /// Fields for the application, or of a denied response.
    package var fields: [String: String] = [:]
    package var removed: [String] = []
    /// Fields for the client.
    package var noted: [String: String] = [:]

    /// Reads a framed message.
    package init(_ framed: [UInt8]) throws(ProtobufReader.Fault) {
        guard framed.count >= 5, framed[0] == 0 else { throw .truncated }
        let bytes = framed.span
        var message = ProtobufReader(5..<framed.count)
        while let field = try message.next(bytes) {
            guard case .bytes(let range) = field.value else { continue }
            var inner = ProtobufReader(range)
            while let member = try inner.next(bytes) {
                switch (field.number, member.number, member.value) {
                case (1, 1, .varint(let code)): self.code = code
                case (2, 1, .bytes(let range)):
                    var status = ProtobufReader(range)
                    if case (1, .varint(let code))? = try status.next(bytes) { self.status = code }
                case (2...3, 2, .bytes(let range)):
                    let field = try Self.header(bytes, range)
                    fields[field.name] = field.value
                case (2, 3, .bytes(let range)): content = Array(framed[range])
                case (3, 5, .bytes(let range)):
                    removed.append(String(decoding: framed[range], as: UTF8.self))
                case (3, 6, .bytes(let range)):
                    let field = try Self.header(bytes, range)
                    noted[field.name] = field.value
                default: break
                }
            }
        }
    }

    private static func header(
        _ bytes: Span<UInt8>,
        _ range: Range<Int>
    ) throws(ProtobufReader.Fault) -> (name: String, value: String) {
        var texts: [UInt64: String] = [:]
        var option = ProtobufReader(range)
        while let field = try option.next(bytes) {
            guard case (1, .bytes(let range)) = field else { continue }
            var header = ProtobufReader(range)
            while let field = try header.next(bytes) {
                guard case .bytes(let range) = field.value else { continue }
                let value = bytes.extracting(range).withUnsafeBufferPointer { Array($0) }
                texts[field.number] = String(decoding: value, as: UTF8.self)
            }
        }
        return (texts[1] ?? "", texts[2] ?? "")
    }
}
