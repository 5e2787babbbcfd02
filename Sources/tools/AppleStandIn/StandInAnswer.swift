/// An answer of the stand-in.
struct StandInAnswer {
    var status: Int
    var retryAfter: Int?
    var contentType = "text/plain"
    /// Further fields.
    var fields: [(name: String, value: String)] = []
    var body: [UInt8]

    init(_ status: Int, _ text: String = "") {
        self.status = status
        body = Array(text.utf8)
    }

    static func json(_ status: Int, _ text: String) -> StandInAnswer {
        var answer = StandInAnswer(status, text)
        answer.contentType = "application/json"
        return answer
    }

    /// The answer as bytes on the wire.
    var bytes: [UInt8] {
        var lines = retryAfter.map { "Retry-After: \($0)\r\n" } ?? ""
        for field in fields { lines += "\(field.name): \(field.value)\r\n" }
        let head =
            "HTTP/1.1 \(status) -\r\n\(lines)Content-Type: \(contentType)\r\n"
            + "Content-Length: \(body.count)\r\n\r\n"
        // These have no content and no length (RFC 9110 §8.6, §15.4.5).
        guard status != 304, status != 204 else {
            return Array("HTTP/1.1 \(status) -\r\n\(lines)\r\n".utf8)
        }
        return Array(head.utf8) + body
    }
}

/// The parts of a request that the stand-in reads.
struct StandInRequest {
    let method: String
    let path: String
    let fields: [(name: String, value: String)]
    var body: [UInt8] = []
    let bodyCount: Int

    /// The value of a field; `nil` when it is absent.
    subscript(name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// Reads a head without its blank line; `nil` when it is not a request's head with a length.
    ///
    /// This is good enough for a client that we know. HTTPWire handles all that a proxy must guard
    /// against.
    init?(head: [UInt8]) {
        // Works on bytes: a carriage return and a line feed are one Character.
        let lines = head.split(separator: UInt8(ascii: "\n")).map { line in
            String(decoding: line.filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
        }
        let words = (lines.first ?? "").split(separator: " ")
        guard words.count == 3 else { return nil }
        method = String(words[0])
        path = String(words[1])
        fields = lines.dropFirst().compactMap { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { return nil }
            return (String(parts[0]), String(parts[1].drop { $0 == " " }))
        }
        let length = fields.first { $0.name.lowercased() == "content-length" }?.value ?? "0"
        guard let count = Int(length), (0...(1 << 20)).contains(count) else { return nil }
        bodyCount = count
    }
}
