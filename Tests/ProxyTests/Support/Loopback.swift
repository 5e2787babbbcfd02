import EventLoops
import KeyStore
import Services
import Testing
import Tokens

@testable import Proxy

/// The operators' listener and a client on one event loop, over a port that the kernel picks.
struct Loopback: Sendable {
    var source: any SnapshotSource = ReadySource(snapshot: .sample())
    var timeouts = Timeouts.operators
    var limits = ProxyLimits.operators

    /// Sends the text on one connection and answers with all that came back until it was closed.
    ///
    /// `prepare` is called on the event loop, before the client connects.
    func exchange(
        _ text: String,
        prepare: @escaping @Sendable (ProxyLoop, RawClient) -> Void = { _, _ in }
    ) async throws -> Response {
        let loop = try EventLoop(number: 0)
        loop.start()
        let bytes: [UInt8] = try await withCheckedThrowingContinuation { continuation in
            loop.perform {
                do {
                    try connect(loop, text, prepare) { continuation.resume(returning: $0) }
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
        return Response(text: String(decoding: bytes, as: UTF8.self))
    }

    private func connect(
        _ loop: EventLoop,
        _ text: String,
        _ prepare: (ProxyLoop, RawClient) -> Void,
        _ done: @escaping ([UInt8]) -> Void
    ) throws {
        let server = ProxyLoop.operators(
            loop,
            source,
            settings: .operators(timeouts, limits),
            over: Decider(
                keys: try KeyTable(journal: MemoryJournal()),
                challenges: ChallengeIssuer(),
                sessions: SessionTable()
            )
        )
        let address = try #require(SocketAddress(ip: "127.0.0.1", port: 0))
        let listener = Listener(descriptor: try Listener.open(address), on: loop)
        listener.accepted = {
            Entrance(tls: nil, takesHTTP2: false).accept($0, from: $1, on: server)
        }
        try listener.start()
        let bound = Listener.boundAddress(listener.descriptor)
        let opened = try Connection.open(to: bound)
        let client = RawClient(
            descriptor: opened.descriptor,
            peer: bound,
            isConnecting: opened.isConnecting,
            on: loop
        )
        client.toSend = Array(text.utf8)
        client.finished = { bytes in
            listener.close()
            server.abort()
            server.whenEmptied {}
            done(bytes)
        }
        prepare(server, client)
        try loop.register(client)
        if !opened.isConnecting { client.begin() }
    }
}

/// All that came back on a connection.
struct Response {
    let text: String

    /// The statuses of all answers, where no content looks like a status line and all of it ends in
    /// LF.
    var statuses: [Int] {
        text.components(of: "\n").compactMap { line in
            line.hasPrefix("HTTP/1.1 ") ? Int(line.dropFirst(9).prefix(3)) : nil
        }
    }

    /// What follows the first head.
    var body: String { text.components(of: "\r\n\r\n").dropFirst().joined(separator: "\r\n\r\n") }

    /// The value of the first field of this name.
    func field(_ name: String) -> String? {
        for line in text.components(of: "\r\n") where line.hasPrefix(name + ": ") {
            return String(line.dropFirst(name.count + 2))
        }
        return nil
    }
}

extension String {
    fileprivate func components(of separator: String) -> [String] {
        let bytes = Array(utf8)
        let mark = Array(separator.utf8)
        var parts: [String] = []
        var start = 0
        var index = 0
        while index + mark.count <= bytes.count {
            // The first byte alone, most times: an answer may have megabytes.
            if bytes[index] == mark[0], bytes[index..<index + mark.count].elementsEqual(mark) {
                parts.append(String(decoding: bytes[start..<index], as: UTF8.self))
                index += mark.count
                start = index
            } else {
                index += 1
            }
        }
        parts.append(String(decoding: bytes[start...], as: UTF8.self))
        return parts
    }
}
