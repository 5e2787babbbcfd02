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
    private var wire: Wire?

    /// From 127.0.0.`host`.
    init(port: UInt16, from host: UInt8 = 1) {
        connect = { try Wire(port: port, from: host == 1 ? nil : host) }
    }

    init(path: String) { connect = { try Wire(path: path) } }

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
        _ fields: [(name: String, value: String)] = []
    ) -> String {
        let lines = fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        return "\(method) \(target) HTTP/1.1\r\nHost: api.example.com\r\n\(lines)"
    }

    /// Sends a request and reads its response.
    func send(
        _ method: String,
        _ target: String,
        _ fields: [(name: String, value: String)] = [],
        content: [UInt8]? = nil
    ) throws -> Answer {
        var head = Self.head(method, target, fields)
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
    func close() { wire = nil }
}
