import Foundation
import SoftwareAuthenticator

/// A response, all of it.
struct Answer {
    let status: Int
    let head: MessageReader.Head
    let body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }

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
    private enum Place {
        case port(UInt16, from: UInt8)
        case path(String)
    }

    struct Ended: Error {}

    private let place: Place
    private var reader: MessageReader?

    /// From 127.0.0.`host`.
    init(port: UInt16, from host: UInt8 = 1) { place = .port(port, from: host) }

    init(path: String) { place = .path(path) }

    private func connection() throws -> MessageReader {
        if let reader { return reader }
        let made =
            switch place {
            case .port(let port, let host): MessageReader(try Socket(port: port, from: host))
            case .path(let path): MessageReader(try Socket(path: path))
            }
        reader = made
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
        let isFresh = reader == nil
        do {
            try connection().socket.send(raw)
            return try answer(isHead: isHead)
        } catch  where !isFresh {
            reader = nil
            try connection().socket.send(raw)
            return try answer(isHead: isHead)
        }
    }

    /// Sends a head and then content piece by piece. When the gateway has answered and closed
    /// before the end of it, the rest is kept.
    func stream(head: String, _ pieces: some Sequence<[UInt8]>) throws -> Answer {
        reader = nil
        let socket = try connection().socket
        try socket.send(head + "\r\n")
        for piece in pieces {
            do { try socket.send(piece) } catch { break }
        }
        return try answer()
    }

    private func answer(isHead: Bool = false) throws -> Answer {
        let reader = try connection()
        while let head = try reader.head() {
            let words = head.startLine.split(separator: " ")
            guard words.count >= 2, let status = Int(words[1]) else { break }
            if status < 200 { continue }
            var body: [UInt8] = []
            let hasContent = !isHead && status != 204 && status != 304
            if hasContent {
                let isWhole = try reader.content(of: head, untilEnd: true) { body += $0 }
                guard isWhole else { break }
            }
            let closes = head.all("Connection").contains { $0.lowercased().contains("close") }
            if closes { self.reader = nil }
            return Answer(status: status, head: head, body: body)
        }
        self.reader = nil
        throw Ended()
    }

    /// Ends the connection.
    func close() { reader = nil }
}
