import Foundation
import HTTPWire
import Synchronization

/// A server of HTTP/1.1 whose answers a closure makes. A thread for each connection.
package final class LoopbackServer: Sendable {
    /// Makes the answer; `nil` ends the connection without one.
    package typealias Answering = @Sendable (ServedRequest) -> ServedAnswer?

    private struct State {
        var connections: [ObjectIdentifier: Socket] = [:]
        var isStopped = false
    }

    /// Seconds that a connection waits for its next request.
    private static let patience = 300
    /// The most bytes of content.
    private static let contentMax = 16 << 20

    package let port: UInt16
    private let listener: Socket
    private let answering: Answering
    private let state = Mutex(State())

    /// Begins to serve.
    ///
    /// - address: of this machine.
    /// - port: 0 for one that the system chooses.
    package init(
        on address: String = "127.0.0.1",
        port: UInt16 = 0,
        answering: @escaping Answering
    ) throws(ToolError) {
        (listener, self.port) = try Socket.listening(on: address, port: port)
        self.answering = answering
        Thread.detachNewThread { [self] in
            while let socket = listener.accepted(patience: Self.patience) {
                guard begins(socket) else { return socket.cut() }
                Thread.detachNewThread {
                    self.serve(socket)
                    self.ended(socket)
                }
            }
        }
    }

    /// Ends it: no more connections, and those that are open are cut.
    package func stop() {
        let open = state.withLock { state in
            state.isStopped = true
            return Array(state.connections.values)
        }
        listener.cut()
        for socket in open { socket.cut() }
    }

    private func begins(_ socket: Socket) -> Bool {
        state.withLock { state in
            guard !state.isStopped else { return false }
            state.connections[ObjectIdentifier(socket)] = socket
            return true
        }
    }

    private func ended(_ socket: Socket) {
        socket.cut()
        state.withLock { $0.connections[ObjectIdentifier(socket)] = nil }
    }

    private func serve(_ socket: Socket) {
        let reader = MessageReader(socket, .request(isSecure: false))
        do throws(ToolError) {
            while let head = try reader.head() {
                if head["Expect"] != nil { try socket.write("HTTP/1.1 100 -\r\n\r\n".utf8) }
                var content: [UInt8] = []
                let isComplete = try reader.content(of: head) { piece in
                    if content.count <= Self.contentMax { content += piece }
                }
                guard isComplete, content.count <= Self.contentMax,
                    let request = ServedRequest(head, content),
                    let answer = answering(request)
                else { return }
                try socket.write(answer.bytes(answering: request.method))
                guard head["Connection"]?.lowercased() != "close" else { return }
            }
        } catch {
            // The client is gone, or sends what is no HTTP.
            return
        }
    }
}

/// A request that has come whole, or is to be sent.
package struct ServedRequest: Sendable {
    package let method: String
    /// Path and query.
    package var target: String
    package var fields: [(name: String, value: String)]
    package let content: [UInt8]

    /// A request without content, for a server.
    package init(method: String, target: String, fields: [(name: String, value: String)]) {
        (self.method, self.target, self.fields, content) = (method, target, fields, [])
    }

    /// `nil` where the first line is none of a request.
    init?(_ head: MessageReader.Head, _ content: [UInt8]) {
        let words = head.line.split(separator: " ")
        guard words.count == 3 else { return nil }
        method = String(words[0])
        target = String(words[1])
        fields = head.fields
        self.content = content
    }

    package var path: String { String(target.prefix { $0 != "?" }) }

    /// The value of a field's first line.
    package subscript(name: String) -> String? {
        LoopbackFields.first(name, of: fields)
    }
}

/// An answer as a server writes it.
package struct ServedAnswer: Sendable {
    package var status: Int
    package var fields: [(name: String, value: String)]
    package var content: [UInt8]

    package init(
        _ status: Int,
        fields: [(name: String, value: String)] = [],
        content: [UInt8] = []
    ) {
        (self.status, self.fields, self.content) = (status, fields, content)
    }

    package static func json(_ status: Int, _ content: [UInt8]) -> ServedAnswer {
        ServedAnswer(status, fields: [("Content-Type", "application/json")], content: content)
    }

    /// The value of a field's first line.
    package subscript(name: String) -> String? {
        LoopbackFields.first(name, of: fields)
    }

    /// Fields that belong to a connection, or are written from the content.
    private static let framing: Set<String> = [
        "connection", "content-length", "keep-alive", "transfer-encoding",
    ]

    /// The answer on the wire.
    func bytes(answering method: String) -> [UInt8] {
        var head = "HTTP/1.1 \(status) -\r\n"
        for field in fields where !Self.framing.contains(field.name.lowercased()) {
            head += "\(field.name): \(field.value)\r\n"
        }
        // Answers without content by their kind (RFC 9110 §8.6, §15.4.5).
        let isBare = status == 204 || status == 304 || method == "HEAD"
        if !isBare { head += "Content-Length: \(content.count)\r\n" }
        return Array((head + "\r\n").utf8) + (isBare ? [] : content)
    }
}

extension Socket {
    /// Sends a request to a port of this machine and reads its answer.
    ///
    /// - seconds: the longest wait for a byte.
    package static func answer(
        to request: ServedRequest,
        from port: UInt16,
        within seconds: Int
    ) throws(ToolError) -> ServedAnswer {
        let socket = try connected(to: port, patience: seconds)
        let omitted: Set<String> = [
            "connection", "content-length", "expect", "keep-alive", "te", "transfer-encoding",
            "upgrade",
        ]
        var head = "\(request.method) \(request.target) HTTP/1.1\r\nConnection: close\r\n"
        for field in request.fields where !omitted.contains(field.name.lowercased()) {
            head += "\(field.name): \(field.value)\r\n"
        }
        if !request.content.isEmpty || request.method != "GET" {
            head += "Content-Length: \(request.content.count)\r\n"
        }
        try socket.write(Array((head + "\r\n").utf8) + request.content)
        let reader = MessageReader(socket, .response)
        let method = Method(rawValue: request.method) ?? .other
        while let head = try reader.head(answering: method) {
            let words = head.line.split(separator: " ", maxSplits: 2)
            guard words.count >= 2, let status = Int(words[1]) else { break }
            guard status >= 200 else { continue }
            var content: [UInt8] = []
            guard try reader.content(of: head, { content += $0 }) else { break }
            return ServedAnswer(status, fields: head.fields, content: content)
        }
        throw ToolError("no answer to \(request.method) \(request.target)")
    }
}
