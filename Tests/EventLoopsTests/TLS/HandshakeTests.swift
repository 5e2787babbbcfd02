import EventLoops
import Expectations
import Synchronization
import Testing

@Suite struct HandshakeTests {
    @Test func `two sessions shake hands and speak TLS 1.3`() throws {
        var pair = try SessionPair()
        #expect(!pair.client.isEstablished)
        expectEqual(pair.client.suite, nil)
        pair.exchange()
        #expect(pair.client.isEstablished)
        #expect(pair.server.isEstablished)
        expectEqual(pair.server.suite?.hasPrefix("TLSv1.3 TLS_"), true)
        expectEqual(pair.client.failure, nil)
    }

    @Test func `a session is resumed although its connection ended without close_notify`() throws {
        let context = try SessionPair.serverContext()
        let resumption = TLSResumption()
        for isResumed in [false, true, true] {
            var pair = try SessionPair(accepting: context, resuming: resumption)
            pair.exchange()
            try #require(pair.client.isEstablished)
            expectEqual(pair.client.isResumed, isResumed)
        }
    }

    @Test func `a client's session ends with its certificate`() throws {
        let certificates = try TestCertificates.shared.get()
        let shown = ServerCertificate(
            chain: certificates.chain("server"),
            key: certificates.key("server")
        )
        let seconds = Atomic<Int64>(0)
        let context = try TLSContext(
            showing: [shown],
            clients: ClientTrust(authorities: certificates.authority, demand: .required),
            wallSeconds: { seconds.load(ordering: .relaxed) }
        )
        let resumption = TLSResumption()
        // The certificate ends with the year 2048.
        let cases: [(now: Int64, isResumed: Bool)] = [
            (2_490_000_000, false), (2_490_000_000, true), (2_500_000_000, false),
        ]
        for (now, isResumed) in cases {
            seconds.store(now, ordering: .relaxed)
            var pair = try SessionPair(accepting: context, resuming: resumption, showing: shown)
            pair.exchange()
            try #require(pair.server.isEstablished)
            expectEqual(pair.server.isResumed, isResumed)
            #expect(pair.server.clientCertificate != nil)
        }
    }

    @Test func `a first flight cut at every byte makes no difference`() throws {
        let flight = try clientFlight()
        let context = try SessionPair.serverContext()
        for cut in 1..<flight.count {
            let server = try TLSSession(accepting: context)
            var none: [UInt8] = []
            server.feed(flight[..<cut])
            try #require(SessionPair.readAll(server, into: &none) == .needsInput)
            try #require(!server.hasCiphertext, "answered after \(cut) bytes")
            server.feed(flight[cut...])
            try #require(SessionPair.readAll(server, into: &none) == .needsInput)
            try #require(server.hasCiphertext, "no answer when cut at \(cut)")
        }
    }

    @Test(arguments: [1, 2, 3, 5, 7, 1000])
    func `a whole conversation in pieces makes no difference`(pieceMax: Int) throws {
        var pair = try SessionPair()
        #expect(pair.client.write("hello".utf8))
        pair.exchange(pieceMax: pieceMax)
        expectEqual(pair.serverRead, Array("hello".utf8))
        #expect(pair.server.write("and you".utf8))
        pair.server.shutDown()
        pair.server.takeCiphertext(into: &pair.toClient)
        pair.exchange(pieceMax: pieceMax)
        expectEqual(pair.clientRead, Array("and you".utf8))
        expectEqual(pair.clientOutcome, .closed)
    }

    @Test(arguments: ["gateway.test", "one.wild.test", "127.0.0.1"])
    func `a name or address in the certificate is accepted`(host: String) throws {
        var pair = try SessionPair(host: host)
        pair.exchange()
        #expect(pair.client.isEstablished)
    }

    @Test(arguments: ["other.test", "wild.test", "a.b.wild.test", "127.0.0.2", "gateway.test.evil"])
    func `a name or address not in the certificate is refused`(host: String) throws {
        var pair = try SessionPair(host: host)
        pair.exchange()
        expectEqual(pair.clientOutcome.reason, .hostMismatch)
        expectEqual(pair.serverOutcome.reason, .certificateRefusedByPeer)
    }

    @Test func `an empty host name or one with a byte 0 makes no session`() throws {
        let context = try TLSContext(clientTrusting: .system)
        #expect(throws: TLSFailure.self) { try TLSSession(connecting: context, to: "") }
        #expect(throws: TLSFailure.self) {
            try TLSSession(connecting: context, to: "gateway.test\0.evil")
        }
    }

    @Test(arguments: [
        ("expired", TLSFailure.Reason.certificateExpired),
        ("future", .certificateNotYetValid),
    ])
    func `a certificate outside its validity is refused`(
        name: String,
        reason: TLSFailure.Reason
    ) throws {
        var pair = try SessionPair(certificate: name)
        pair.exchange()
        expectEqual(pair.clientOutcome.reason, reason)
        expectEqual(pair.serverOutcome.reason, .certificateRefusedByPeer)
    }

    @Test func `a certificate of an authority that is not trusted is refused`() throws {
        let stranger = try TestCertificates.shared.get().stranger
        for trust in [TLSContext.Trust.file(stranger), .system] {
            var pair = try SessionPair(trust: trust)
            pair.exchange()
            expectEqual(pair.clientOutcome.reason, .certificateUntrusted)
        }
    }

    @Test func `an origin's own certificate in the trust file is enough`() throws {
        let own = try TestCertificates.shared.get().chain("server")
        var pair = try SessionPair(trust: .file(own))
        pair.exchange()
        #expect(pair.client.isEstablished)
    }

    @Test(arguments: ["GET / HTTP/1.1\r\n", "D", "OPTIONS * HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n"])
    func `HTTP without TLS is named and answered with nothing`(text: String) throws {
        let server = try TLSSession(accepting: SessionPair.serverContext())
        server.feed(text.utf8)
        var none: [UInt8] = []
        expectEqual(SessionPair.readAll(server, into: &none).reason, .plainHTTP)
        #expect(!server.hasCiphertext)
        server.feed("more".utf8)
        #expect(!server.write("anything".utf8))
        server.shutDown()
        expectEqual(SessionPair.readAll(server, into: &none).reason, .plainHTTP)
    }

    @Test func `an origin that answers in HTTP without TLS is named`() throws {
        let pair = try SessionPair()
        pair.client.feed("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
        var none: [UInt8] = []
        expectEqual(SessionPair.readAll(pair.client, into: &none).reason, .plainHTTP)
    }

    @Test(arguments: [0x00, 0x0d, 0x19, 0x61, 0x80, 0xff])
    func `a first byte that begins no record is not TLS`(byte: Int) throws {
        let server = try TLSSession(accepting: SessionPair.serverContext())
        server.feed([UInt8(byte), 1, 2, 3, 4, 5])
        var none: [UInt8] = []
        expectEqual(SessionPair.readAll(server, into: &none).reason, .notTLS)
    }

    @Test(arguments: [UInt8(1), 2])
    func `TLS 1.0 and 1.1 are refused with an alert`(minor: UInt8) throws {
        let server = try TLSSession(accepting: SessionPair.serverContext())
        server.feed(Self.hello(legacyMinor: minor))
        var none: [UInt8] = []
        expectEqual(SessionPair.readAll(server, into: &none).reason, .versionUnsupported)
        var answer: [UInt8] = []
        server.takeCiphertext(into: &answer)
        // RFC 8446 §6: content type alert 21, level fatal 2, protocol_version 70.
        expectEqual(answer.first, 21)
        expectEqual(answer.suffix(2), [2, 70])
    }

    @Test func `TLS 1.2 alone is enough, unless 1.3 is asked for`() throws {
        var none: [UInt8] = []
        let server = try TLSSession(accepting: SessionPair.serverContext())
        server.feed(Self.hello(legacyMinor: 3))
        expectEqual(SessionPair.readAll(server, into: &none), .needsInput)
        #expect(server.hasCiphertext)
        let strict = try TLSSession(accepting: SessionPair.serverContext("server", .tls13))
        strict.feed(Self.hello(legacyMinor: 3))
        expectEqual(SessionPair.readAll(strict, into: &none).reason, .versionUnsupported)
    }

    @Test func `cipher suites without forward secrecy are refused`() throws {
        let server = try TLSSession(accepting: SessionPair.serverContext())
        // TLS_RSA_WITH_AES_128_GCM_SHA256.
        server.feed(Self.hello(legacyMinor: 3, suite: [0x00, 0x9c]))
        var none: [UInt8] = []
        expectEqual(SessionPair.readAll(server, into: &none).reason, .noSharedCipher)
    }

    @Test(arguments: [(["h2"], false), (["h2", "http/1.1"], true), (["http/1.0", "h3"], false)])
    func `of the protocols a client names, HTTP/1.1 is chosen`(
        names: [String],
        isServed: Bool
    ) throws {
        let server = try TLSSession(accepting: SessionPair.serverContext())
        server.feed(Self.hello(legacyMinor: 3, protocols: names))
        var none: [UInt8] = []
        let outcome = SessionPair.readAll(server, into: &none)
        expectEqual(outcome.reason, isServed ? nil : .noSharedProtocol)
        #expect(server.hasCiphertext)
    }

    @Test func `a handshake in bytes that never end is given up`() throws {
        let server = try TLSSession(accepting: SessionPair.serverContext())
        // A record of 16 KiB that never carries a whole message: the message says 2^24-1 bytes.
        let record: [UInt8] = [22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff]
        server.feed((record + [UInt8](repeating: 0, count: 16380)))
        var none: [UInt8] = []
        expectEqual(SessionPair.readAll(server, into: &none).reason, .malformed)
    }

    private func clientFlight() throws -> [UInt8] {
        var pair = try SessionPair()
        pair.readClient()
        return pair.toServer
    }

    /// A ClientHello of TLS 1.2 or before (RFC 5246 §7.4.1.2), by hand: today's clients make none
    /// of 1.1.
    private static func hello(
        legacyMinor: UInt8,
        suite: [UInt8] = [0xc0, 0x2b],
        protocols: [String] = []
    ) -> [UInt8] {
        // supported_groups: secp256r1. signature_algorithms: ecdsa_secp256r1_sha256.
        var extensions: [UInt8] = [0, 10, 0, 4, 0, 2, 0, 23, 0, 13, 0, 4, 0, 2, 4, 3]
        if !protocols.isEmpty {
            let list = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
            let count = UInt8(list.count)
            extensions += [0, 16, 0, count + 2, 0, count] + list
        }
        var body: [UInt8] = [3, legacyMinor]
        body += [UInt8](repeating: 7, count: 32) + [0]
        body += [0, 2] + suite + [1, 0]
        body += [0, UInt8(extensions.count)] + extensions
        let message: [UInt8] = [1, 0, 0, UInt8(body.count)] + body
        return [22, 3, 1, 0, UInt8(message.count)] + message
    }
}
