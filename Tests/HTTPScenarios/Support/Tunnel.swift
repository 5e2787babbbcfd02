import Expectations
import LoopbackKit
import Testing

// A tunnel of a WebSocket whose handshake nobody looks at closely.
extension OriginConnection {
    /// Takes a request and agrees to a tunnel; `false` when no request comes.
    func agreeToTunnel() throws -> Bool {
        guard try nextRequest() != nil else { return false }
        try wire.send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                + "Connection: upgrade\r\n\r\n"
        )
        return true
    }
}

extension Wire {
    /// Asks for a tunnel, and gets one.
    func openTunnel() throws {
        try send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        try expectEqual(readResponse().status, 101)
    }

    /// Sends bytes through a tunnel whose other end sends them back.
    func expectEcho(count: Int = 200_000) throws {
        let message = [UInt8](repeating: 3, count: count)
        try send(message)
        try expectEqual(take(message.count), message)
    }
}
