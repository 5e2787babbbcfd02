import COpenSSL
import Expectations
import Testing

@testable import EventLoops

@Suite struct TransferTests {
    private func established() throws -> SessionPair {
        var pair = try SessionPair()
        pair.exchange()
        try #require(pair.client.isEstablished && pair.server.isEstablished)
        return pair
    }

    private func pattern(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    }

    @Test func `megabytes cross in both directions at once`() throws {
        var pair = try established()
        let up = pattern(3 << 20)
        let down = Array(up.reversed())
        #expect(pair.client.write(up))
        #expect(pair.server.write(down))
        pair.client.takeCiphertext(into: &pair.toServer)
        pair.server.takeCiphertext(into: &pair.toClient)
        pair.exchange()
        expectEqual(pair.serverRead, up)
        expectEqual(pair.clientRead, down)
    }

    @Test(arguments: [1, 2, 16383, 16384, 16385, 65536])
    func `a read fills the buffer it is given, from many records`(bufferSize: Int) throws {
        var pair = try established()
        let plain = pattern(40_000)
        #expect(pair.client.write(plain))
        pair.client.takeCiphertext(into: &pair.toServer)
        pair.server.feed(pair.toServer)
        var first = [UInt8](repeating: 0, count: bufferSize)
        let outcome = first.withUnsafeMutableBytes { pair.server.read(into: $0) }
        expectEqual(outcome, .bytes(min(bufferSize, plain.count)))
        var rest: [UInt8] = []
        expectEqual(
            SessionPair.readAll(pair.server, into: &rest, bufferSize: bufferSize),
            .needsInput
        )
        expectEqual(first.prefix(plain.count) + rest, plain[...])
    }

    @Test(arguments: [1, 4, 100, 65536])
    func `bytes can be fed and read in one step`(bufferSize: Int) throws {
        var pair = try established()
        let plain = pattern(100_000)
        #expect(pair.client.write(plain))
        pair.client.takeCiphertext(into: &pair.toServer)
        var read: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: bufferSize)
        var start = 0
        while start < pair.toServer.count {
            let end = min(start + 30_000, pair.toServer.count)
            let piece = Array(pair.toServer[start..<end])
            start = end
            let outcome = buffer.withUnsafeMutableBytes {
                pair.server.read(into: $0, feeding: piece.span)
            }
            if case .bytes(let count) = outcome { read += buffer[..<count] }
            expectEqual(SessionPair.readAll(pair.server, into: &read), .needsInput)
        }
        expectEqual(read, plain)
    }

    @Test func `what is written before the handshake ends arrives after it`() throws {
        var pair = try SessionPair()
        #expect(pair.client.write("GET / ".utf8))
        #expect(pair.client.write("HTTP/1.1\r\n\r\n".utf8))
        expectEqual(pair.client.earlyPlaintext.count, 18)
        pair.client.shutDown()
        #expect(!pair.client.write("too late".utf8))
        pair.exchange()
        expectEqual(pair.serverRead, Array("GET / HTTP/1.1\r\n\r\n".utf8))
        #expect(pair.client.earlyPlaintext.isEmpty)
        expectEqual(pair.serverOutcome, .closed)
    }

    @Test func `close_notify is an orderly end, and writing goes on after it`() throws {
        var pair = try established()
        #expect(pair.client.write("last words".utf8))
        pair.client.shutDown()
        pair.client.takeCiphertext(into: &pair.toServer)
        pair.exchange()
        expectEqual(pair.serverRead, Array("last words".utf8))
        expectEqual(pair.serverOutcome, .closed)
        #expect(pair.server.write("the answer".utf8))
        pair.server.shutDown()
        pair.server.takeCiphertext(into: &pair.toClient)
        pair.exchange()
        expectEqual(pair.clientRead, Array("the answer".utf8))
        expectEqual(pair.clientOutcome, .closed)
        expectEqual(pair.client.failure, nil)
    }

    @Test func `one changed bit ends the connection and tells the peer`() throws {
        var pair = try established()
        #expect(pair.client.write("untouched".utf8))
        pair.client.takeCiphertext(into: &pair.toServer)
        pair.toServer[pair.toServer.count - 1] ^= 1
        pair.server.feed(pair.toServer)
        pair.readServer()
        #expect(pair.serverRead.isEmpty)
        expectEqual(pair.serverOutcome.reason, .malformed)
        pair.client.feed(pair.toClient)
        pair.readClient()
        expectEqual(pair.clientOutcome.reason, .peerAlert)
    }

    @Test func `a write beyond what may wait is not accepted, and is once there is room`() throws {
        var pair = try established()
        let piece = [UInt8](repeating: 1, count: 1 << 20)
        var accepted = 0
        while pair.client.write(piece) { accepted += 1 }
        expectEqual(accepted, 3)
        expectEqual(pair.client.failure, nil)
        pair.client.takeCiphertext(into: &pair.toServer)
        #expect(pair.client.write(piece))
        pair.client.takeCiphertext(into: &pair.toServer)
        pair.exchange()
        expectEqual(pair.serverRead.count, 4 << 20)
    }

    @Test func `early writes beyond what may wait are not accepted`() throws {
        let pair = try SessionPair()
        let piece = [UInt8](repeating: 1, count: TLSLimits.earlyPlaintextMax)
        #expect(pair.client.write(piece))
        #expect(!pair.client.write([0]))
        expectEqual(pair.client.failure, nil)
    }

    @Test func `a driver that feeds without reading is stopped`() throws {
        let pair = try established()
        let piece = [UInt8](repeating: 23, count: TLSLimits.unreadCiphertextMax)
        pair.server.feed(piece)
        expectEqual(pair.server.failure, nil)
        pair.server.feed([23])
        expectEqual(pair.server.failure?.reason, .limitReached)
    }

    @Test func `empty writes and feeds do nothing`() throws {
        let pair = try established()
        var none: [UInt8] = []
        pair.server.feed(none)
        #expect(pair.server.write(none))
        #expect(!pair.server.hasCiphertext)
        expectEqual(SessionPair.readAll(pair.server, into: &none), .needsInput)
    }

    @Test func `a new key in mid-conversation makes no difference`() throws {
        var pair = try established()
        pair.client.updateKey(isPeerAsked: true)
        #expect(pair.client.write("under the new key".utf8))
        pair.client.takeCiphertext(into: &pair.toServer)
        pair.exchange()
        expectEqual(pair.serverRead, Array("under the new key".utf8))
        #expect(pair.server.write("the same".utf8))
        pair.server.takeCiphertext(into: &pair.toClient)
        pair.exchange()
        expectEqual(pair.clientRead, Array("the same".utf8))
    }

    /// The answer, an alert, waited for the next write (tlsfuzzer's `test-renegotiation-disabled`).
    @Test func `a read that returns content tells of the answer that the peer has caused`() throws {
        var pair = try SessionPair()
        // TLS 1.3 has no second handshake.
        let version = Int(TLS1_2_VERSION)
        let isSet = SSL_ctrl(pair.client.pointer, SSL_CTRL_SET_MAX_PROTO_VERSION, version, nil) == 1
        _ = SSL_clear_options(pair.client.pointer, copenssl_SSL_OP_NO_RENEGOTIATION)
        pair.exchange()
        try #require(isSet && pair.client.isEstablished && pair.server.isEstablished)
        #expect(pair.client.write("GET".utf8))
        pair.client.takeCiphertext(into: &pair.toServer)
        try #require(SSL_renegotiate(pair.client.pointer) == 1)
        _ = SSL_do_handshake(pair.client.pointer)
        var handshake: [UInt8] = []
        pair.client.takeCiphertext(into: &handshake)
        try #require(!handshake.isEmpty)

        pair.server.feed(pair.toServer + handshake)
        var buffer = [UInt8](repeating: 0, count: 64)
        let outcome = buffer.withUnsafeMutableBytes { pair.server.read(into: $0) }
        expectEqual(outcome, .bytes(3))
        #expect(pair.server.hasAnswered && pair.server.hasCiphertext)
    }

    @Test func `a peer that asks for keys and sends no content is given up`() throws {
        var pair = try established()
        for _ in 0..<1000 {
            guard pair.server.failure == nil else { break }
            pair.client.updateKey(isPeerAsked: true)
            pair.client.takeCiphertext(into: &pair.toServer)
            pair.exchange()
        }
        expectEqual(pair.server.failure?.reason, .limitReached)
    }
}
