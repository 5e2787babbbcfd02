import HTTPWire

/// A request as a client sends it.
struct Call {
    var method: String
    var target: String
    var fields: [(name: String, value: String)] = []
    var content: [UInt8] = []
    /// The host that it asks; the admin listener answers only to its own name.
    var host = "shop.example.com"
    /// The content is sent in chunks, without Content-Length.
    var isChunked = false

    init(_ method: String, _ target: String, content: [UInt8] = []) {
        self.method = method
        self.target = target
        self.content = content
    }

    /// A call for the metrics of the admin listener.
    static var metrics: Call {
        var call = Call("GET", "/metrics")
        call.host = "localhost"
        return call
    }

    /// With JSON as its content.
    static func json(_ target: String, _ text: String) -> Call {
        var call = Call("POST", target, content: Array(text.utf8))
        call.fields = [("Content-Type", "application/json")]
        return call
    }

    /// The bytes of the head.
    var head: [UInt8] {
        var text = "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        if isChunked {
            text += "Transfer-Encoding: chunked\r\n"
        } else if !content.isEmpty || method != "GET" {
            text += "Content-Length: \(content.count)\r\n"
        }
        return Array((text + "\r\n").utf8)
    }

    /// The bytes after the head, in the pieces in which they are sent.
    var pieces: [[UInt8]] {
        guard isChunked else { return [content] }
        let size = 64 << 10
        let chunks = stride(from: 0, to: content.count, by: size).map { start in
            let chunk = content[start..<min(start + size, content.count)]
            return Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk
                + Array("\r\n".utf8)
        }
        return chunks + [Array("0\r\n\r\n".utf8)]
    }

    /// Sends all but the last byte, then ends, and waits until the gateway has ended too.
    func sendTruncated(to port: UInt16) throws(DemoError) {
        let socket = try Socket.connected(to: port)
        try socket.write(head)
        try socket.write(content.dropLast())
        socket.endOutput()
        while try !socket.read().isEmpty {}
    }

    /// Sends the request on a connection of its own and reads the answer. `betweenPieces` is called
    /// before each piece of content but the first, with its number.
    func send(
        to port: UInt16,
        betweenPieces: (Int) throws(DemoError) -> Void = { (_) throws(DemoError) in }
    ) throws(DemoError) -> Answer {
        let socket = try Socket.connected(to: port)
        try socket.write(head)
        for (number, piece) in pieces.enumerated() {
            if number > 0 { try betweenPieces(number) }
            try socket.write(piece)
        }
        return try Answer(MessageReader(socket, .response))
    }
}
