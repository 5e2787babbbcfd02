import EventLoops
import Foundation
import LoopbackKit
import SoftwareAuthenticator

/// A response, all of it.
typealias Answer = WireResponse

extension Answer {
    /// The `reason` of a problem document; empty where there is none.
    var reason: String { member("reason") ?? "" }

    /// A member of a JSON object that is a text.
    func member(_ name: String) -> String? { object?[name] as? String }

    var object: [String: Any]? {
        (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any]
    }

    func value(_ name: String) -> String? { head.value(name) }
}

/// A client that keeps its connection as long as the gateway does.
final class HTTPClient {
    private let connect: () throws -> Wire
    /// What requests ask for. The admin listener answers no name but its own.
    private let host: String
    private let speaksHTTP2: Bool
    private var wire: Wire?
    private var session: HTTP2Client?

    /// From 127.0.0.`host`.
    ///
    /// - network: where that is; `nil` for the tests' own.
    init(
        port: UInt16,
        from host: UInt8 = 1,
        on network: NetworkNamespace? = nil,
        _ side: ClientSide = .http1,
        asking name: String = "api.example.com"
    ) {
        self.host = name
        speaksHTTP2 = side == .http2
        connect = {
            let host = host == 1 ? nil : host
            let tls =
                try side == .tls
                ? TLSSession(connecting: ClientSide.trust.get(), to: "127.0.0.1") : nil
            let descriptor =
                try network?.within { try LoopbackKit.connected(port: port, from: host) }
                ?? LoopbackKit.connected(port: port, from: host)
            return Wire(descriptor: descriptor, tls: tls)
        }
    }

    init(path: String) {
        host = "localhost"
        speaksHTTP2 = false
        connect = { try Wire(path: path) }
    }

    private func connection() throws -> Wire {
        if let wire { return wire }
        let made = try connect()
        wire = made
        return made
    }

    /// A request head in text, without the blank line.
    static func head(
        _ method: String,
        _ target: String,
        _ fields: [(name: String, value: String)] = [],
        host: String = "api.example.com"
    ) -> String {
        let lines = fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        return "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\n\(lines)"
    }

    /// Sends a request and reads its response.
    func send(
        _ method: String,
        _ target: String,
        _ fields: [(name: String, value: String)] = [],
        content: [UInt8]? = nil
    ) throws -> Answer {
        if speaksHTTP2, Self.canBeHTTP2(fields) {
            return try sendHTTP2(method, target, fields, content)
        }
        var head = Self.head(method, target, fields, host: host)
        if let content { head += "Content-Length: \(content.count)\r\n" }
        return try send(
            raw: Array((head + "\r\n").utf8) + (content ?? []),
            isHead: method == "HEAD"
        )
    }

    /// Sends a signed request.
    func send(
        _ request: SoftwareKey.Request,
        _ proof: RequestProof,
        more fields: [(name: String, value: String)] = []
    ) throws -> Answer {
        try send(
            request.method,
            request.target,
            proof.fields + request.fields.map { ($0.key, $0.value) } + fields,
            content: request.content.isEmpty ? nil : request.content
        )
    }

    /// Sends a request's bytes and reads the response. A connection that had ended since the last
    /// one is made anew.
    func send(raw: [UInt8], isHead: Bool = false) throws -> Answer {
        let isFresh = wire == nil
        do {
            try connection().send(raw)
            return try answer(isHead: isHead)
        } catch  where !isFresh {
            wire = nil
            try connection().send(raw)
            return try answer(isHead: isHead)
        }
    }

    /// Sends a head and then content piece by piece. When the gateway has answered and closed
    /// before the end of it, the rest is kept.
    func stream(head: String, _ pieces: some Sequence<[UInt8]>) throws -> Answer {
        wire = nil
        let wire = try connection()
        try wire.send(head + "\r\n")
        for piece in pieces {
            do { try wire.send(piece) } catch { break }
        }
        return try answer()
    }

    private func answer(isHead: Bool = false) throws -> Answer {
        do {
            let answer = try connection().readFinalResponse(to: isHead ? "HEAD" : "GET")
            let options = answer.head.all("Connection").map { $0.lowercased() }
            if answer.isUntilClose || options.contains(where: { $0.contains("close") }) {
                wire = nil
            }
            return answer
        } catch {
            wire = nil
            throw error
        }
    }

    /// Ends the connection.
    func close() {
        wire = nil
        session = nil
    }

    // MARK: HTTP/2

    /// Whether HTTP/2 has these fields (RFC 9113 §8.2). A scenario about others says them in
    /// HTTP/1.1, and what HTTP/2 does with them is tested with its hostile clients.
    private static func canBeHTTP2(_ fields: [(name: String, value: String)]) -> Bool {
        let ofHTTP1 = ["connection", "keep-alive", "te", "transfer-encoding", "upgrade"]
        return fields.allSatisfy { name, value in
            !ofHTTP1.contains(name.lowercased()) && !name.contains(" ") && !name.isEmpty
                && value == value.trimmingCharacters(in: .whitespaces)
        }
    }

    private func sendHTTP2(
        _ method: String,
        _ target: String,
        _ fields: [(name: String, value: String)],
        _ content: [UInt8]?
    ) throws -> Answer {
        let pseudo = [
            (":method", method), (":scheme", "http"), (":authority", host),
            (":path", target),
        ]
        let length = content.map { [("content-length", String($0.count))] } ?? []
        let all = pseudo + fields.map { ($0.name.lowercased(), $0.value) } + length
        let isFresh = session == nil
        do {
            return try answer(to: all, content)
        } catch  where !isFresh {
            session = nil
            return try answer(to: all, content)
        }
    }

    private func answer(to fields: [(String, String)], _ content: [UInt8]?) throws -> Answer {
        let client = try session ?? HTTP2Client(try connect())
        session = client
        let answer = try client.ask(fields, content)
        if !client.goAways.isEmpty { session = nil }
        guard answer.status != 0 else {
            throw WireFault.malformed("reset with \(answer.reset ?? 0)")
        }
        let head = WireHead(
            startLine: "HTTP/2 \(answer.status)",
            fields: answer.fields.filter { !$0.name.hasPrefix(":") }
        )
        var response = Answer(head: head, status: answer.status)
        response.body = answer.content
        response.trailers = answer.trailers
        return response
    }
}
