import EventLoops
import Expectations
import Testing

/// Which certificate a client is shown, and how its session goes on.
@Suite struct CertificateChoiceTests {
    @Test(arguments: [
        ("a.test", 1), ("A.TEST", 1), ("a.test.", 1), ("x.b.test", 2), ("X.B.test", 2),
        ("c.b.test", 3), ("b.test", nil), ("y.x.b.test", nil), (".b.test", nil), ("", nil),
        ("other.test", nil), ("*.b.test", 2),
    ])
    func `an exact name goes before a wildcard, which stands for one label`(
        name: String,
        certificate: Int?
    ) {
        var names = ServerNames()
        for (place, name) in [(1, "a.test"), (2, "*.b.test"), (3, "C.b.test")] {
            expectEqual(names.add(name, place), nil)
        }
        expectEqual(names.certificate(for: name), certificate)
    }

    @Test func `the first certificate with a name keeps it`() {
        var names = ServerNames()
        expectEqual(names.add("a.test", 0), nil)
        expectEqual(names.add("a.test", 0), nil)
        expectEqual(names.add("A.test", 1), 0)
        expectEqual(names.add("*.a.test", 1), nil)
        expectEqual(names.add("*.a.test", 2), 1)
        expectEqual(names.certificate(for: "a.test"), 0)
    }

    @Test func `keys of tickets change, and open tickets as long as one may be good`() {
        let keys = TicketKeys(now: 100)
        let (rotation, lifetime) = (TicketKeys.rotationSeconds, TicketKeys.lifetimeSeconds)
        keys.rotate(now: 100 + rotation - 1)
        expectEqual(keys.count, 1)
        keys.rotate(now: 100 + rotation)
        expectEqual(keys.count, 2)
        keys.rotate(now: 100 + rotation + lifetime - 1)
        expectEqual(keys.count, 3)
        keys.rotate(now: 100 + rotation + lifetime)
        expectEqual(keys.count, 2)
        // After a long sleep there is one again, and it is new.
        keys.rotate(now: 1_000_000)
        expectEqual(keys.count, 1)
    }

    private static func context(
        _ shown: [(name: String, names: [String])],
        tickets: TicketKeys = TicketKeys()
    ) throws -> TLSContext {
        let certificates = try TestCertificates.shared.get()
        return try TLSContext(
            showing: shown.map {
                ServerCertificate(
                    chain: certificates.chain($0.name),
                    key: certificates.key($0.name),
                    names: $0.names
                )
            },
            tickets: tickets
        )
    }

    @Test(arguments: [
        ("gateway.test", true), ("one.wild.test", true), ("other.test", true),
        ("nobody.test", false),
    ])
    func `a client gets the certificate for the name that it asks for`(
        host: String,
        isFound: Bool
    ) throws {
        let context = try Self.context([("server", []), ("other", [])])
        expectEqual(
            context.certificates.map(\.names),
            [["gateway.test", "*.wild.test"], ["other.test"]]
        )
        var pair = try SessionPair(accepting: context, host: host)
        pair.exchange()
        expectEqual(pair.client.isEstablished, isFound)
        if !isFound { expectEqual(pair.clientOutcome.reason, .hostMismatch) }
    }

    @Test func `names that are said take the place of those in the certificate`() throws {
        let context = try Self.context([("other", []), ("server", ["one.wild.test"])])
        #expect(context.certificates[1].covers("one.wild.test"))
        #expect(!context.certificates[1].covers("a.one.wild.test"))
        #expect(!context.certificates[0].covers("gateway.test"))
        var named = try SessionPair(accepting: context, host: "one.wild.test")
        named.exchange()
        #expect(named.client.isEstablished)
        var unnamed = try SessionPair(accepting: context, host: "gateway.test")
        unnamed.exchange()
        expectEqual(unnamed.clientOutcome.reason, .hostMismatch)
    }
}

/// What goes from one process to the next.
@Suite struct TicketStateTests {
    @Test func `keys go over with their age, and others' bytes change nothing`() {
        let (rotation, lifetime) = (TicketKeys.rotationSeconds, TicketKeys.lifetimeSeconds)
        let before = TicketKeys(now: 100)
        before.rotate(now: 100 + rotation)
        let state = before.state
        let after = TicketKeys(now: 200 + rotation)
        for wrong in [[], Array(state.dropLast()), state + [0]] as [[UInt8]] {
            #expect(!after.take(wrong, now: 200 + rotation))
            expectEqual(after.count, 1)
        }
        let many = Array(repeating: state, count: 9).flatMap(\.self)
        #expect(!after.take(many, now: 200 + rotation))
        #expect(after.take(state, now: 200 + rotation))
        expectEqual(after.state, state)
        after.rotate(now: 100 + rotation + lifetime)
        expectEqual(after.count, 2)
        // One of the future is of now; one of long ago is over.
        let late = TicketKeys(now: .max)
        #expect(after.take(late.state, now: 5_000))
        after.rotate(now: 5_000 + rotation)
        expectEqual(after.count, 2)
        let old = TicketKeys(now: .min)
        #expect(after.take(old.state, now: 5_000))
        after.rotate(now: 5_000)
        expectEqual(after.count, 1)
        #expect(after.state != old.state)
    }
}
