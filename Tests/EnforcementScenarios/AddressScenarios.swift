import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// What one address may cost in verifications.
    @Suite struct Addresses {
        private static let signing = SigningForm.lines([.method, .target], headers: [])

        private static let rules = """
            - id: enforced
              match: { path: /enforced }
              mode: enforce
              sign: [method, target]
            - id: observed
              match: { path: /observed }
              mode: observe
              sign: [method, target]
            """

        private static func request(_ path: String = "/enforced") -> SoftwareKey.Request {
            SoftwareKey.Request(method: "GET", target: path, content: [], challenge: nil)
        }

        private func send(
            _ key: inout SoftwareKey,
            _ client: HTTPClient,
            _ path: String = "/enforced",
            damage: AssertionDamage? = nil,
            from address: String? = nil
        ) throws -> Answer {
            let request = Self.request(path)
            let proof = key.proof(of: request, signing: Self.signing, damage: damage)
            return try client.send(
                request,
                proof,
                more: address.map { [("X-Forwarded-For", $0)] } ?? []
            )
        }

        @Test func `after many bad signatures an address gets no verification for a while`() throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, origin, key) = try scenario.start(
                rules: Self.rules,
                more: "limits: { address_failures: 3/m }"
            )
            let client = gateway.client()
            for _ in 0..<3 {
                let answer = try send(&key, client, damage: .signature)
                expectEqual(answer.reason, "signature-mismatch")
            }
            // Good or bad, what would cost a verification waits; what costs none is answered.
            let refused = try send(&key, client)
            expectEqual(refused.status, 429)
            expectEqual(refused.reason, "address-throttled")
            expectEqual(refused.member("next"), "retry-later")
            let wait = try #require(refused.value("Retry-After").flatMap { Int($0) })
            #expect((1...21).contains(wait))
            var stranger = Scenario.device.makeKey()
            try expectEqual(send(&stranger, client).reason, "key-unknown")
            try expectEqual(client.send("GET", "/enforced").reason, "assertion-missing")
            try expectEqual(client.send("GET", "/").status, 200)
            // A bad attestation costs as much as a bad signature. Who holds an admitted challenge
            // has one try all the same; then it waits as well.
            let challenge = try gateway.challenges("enrolment", client)[0]
            let bad = try gateway.enrol(stranger, client, with: challenge, damage: .otherNonce)
            expectEqual(bad.reason, "nonce-mismatch")
            let enrolment = try gateway.enrol(stranger, client, with: challenge)
            expectEqual(enrolment.status, 429)
            expectEqual(enrolment.reason, "address-throttled")
            expectEqual(enrolment.member("next"), "retry-later")
            try expectEqual(gateway.enrol(stranger, client).status, 201)
            // Observed requests go on, without a verdict about their signature.
            try expectEqual(send(&key, client, "/observed").status, 200)
            let seen = try #require(try origin.seen(2).last)
            expectEqual(seen.head.all("App-Attest-Verdict"), ["refuse"])
            expectEqual(seen.head.all("App-Attest-Reason"), ["address-throttled"])
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `behind a trusted proxy the failures are those of the client that it names`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, _, key) = try scenario.start(
                rules: Self.rules,
                more: "trusted_proxies: [127.0.0.1]\nlimits: { address_failures: 2/m }"
            )
            let client = gateway.client()
            for _ in 0..<2 {
                let bad = try send(&key, client, damage: .signature, from: "192.0.2.1")
                expectEqual(bad.status, 403)
            }
            try expectEqual(send(&key, client, from: "192.0.2.1").status, 429)
            try expectEqual(send(&key, client, from: "192.0.2.2").status, 200)
            // Nobody is named: they are the proxy's own.
            for name in [nil, "unknown"] {
                try expectEqual(send(&key, client, damage: .signature, from: name).status, 403)
            }
            try expectEqual(send(&key, client, from: "_hidden").status, 429)
            try expectEqual(send(&key, client, from: "192.0.2.2").status, 200)
            try expectEqual(gateway.stop(), 0)
        }

        /// Behind a proxy that appends the client's address, here 192.0.2.1.
        @Test(arguments: [
            #"""#, #"\"#, "unknown", "_x", "127.0.0.1", "127.0.0.1:80", "[::ffff:127.0.0.1]:80",
            ",",
        ])
        func `no spelling in X-Forwarded-For lifts the limits of an address`(_ written: String)
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, origin, key) = try scenario.start(
                rules: Self.rules,
                more: "trusted_proxies: [127.0.0.1]\nlimits: { address_failures: 1/m }"
            )
            let client = gateway.client()
            let line = "\(written), 192.0.2.1"
            // One failure in a minute, so that a slow machine has a minute for the next two lines;
            // of two, the first is forgiven after thirty seconds.
            try expectEqual(send(&key, client, damage: .signature, from: line).status, 403)
            try expectEqual(send(&key, client, from: line).status, 429)
            try expectEqual(send(&key, client, from: "192.0.2.1").status, 429)
            try expectEqual(send(&key, client, from: "192.0.2.2").status, 200)
            // And nothing of it is told to the origin, which may read either end of the list.
            let head = try origin.seen(1)[0].head
            expectEqual(head.all("X-Forwarded-For"), ["192.0.2.2, 127.0.0.1"])
            try expectEqual(gateway.stop(), 0)
        }

        @Test(arguments: [false, true])
        func `behind an nginx that appends, a quote lifts no limit`(_ forwarded: Bool) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let source = forwarded ? "forwarded" : "x-forwarded-for"
            try scenario.configure(
                origin,
                rules: "[]",
                more: """
                    trusted_proxies: [127.0.0.1]
                    client_address: \(source)
                    limits: { address_requests: 1/s, address_burst: 3 }
                    """
            )
            let gateway = try scenario.serve()
            guard let front = try NginxFront(scenario, before: gateway, forwarded: forwarded) else {
                return
            }
            let name = forwarded ? "Forwarded" : "X-Forwarded-For"
            let written = forwarded ? ["for=\"", "for=127.0.0.1"] : ["\"", "127.0.0.1"]
            let flood = HTTPClient(port: front.port, from: 2)
            let statuses = try (0..<12).map { _ in
                try flood.send("GET", "/flood", [(name, written[0])]).status
            }
            #expect(statuses.prefix(3).allSatisfy { $0 == 200 })
            #expect(statuses.contains(429))
            let other = HTTPClient(port: front.port, from: 3)
            try expectEqual(other.send("GET", "/other", [(name, written[0])]).status, 200)
            let seen = try #require(origin.seen.first { $0.target == "/other" })
            expectEqual(seen.head.all("X-Forwarded-For"), ["127.0.0.3, 127.0.0.1"])
            if forwarded {
                let elements = seen.head.all("Forwarded").joined(separator: ", ")
                #expect(elements.hasPrefix("for=127.0.0.3;proto=http, for=127.0.0.1;"))
            }
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `a connection of a proxy that a reload no longer trusts is a stranger's`() throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let limits = "limits: { address_requests: 1000/s, address_burst: 1000 }"
            try scenario.configure(
                origin,
                rules: "[]",
                more: "trusted_proxies: [127.0.0.1]\n\(limits)"
            )
            let gateway = try scenario.serve()
            let client = gateway.client()
            func told(_ count: Int) throws -> [String] {
                try expectEqual(
                    client.send("GET", "/", [("X-Forwarded-For", "192.0.2.1")]).status,
                    200
                )
                return try origin.seen(count)[count - 1].head.all("X-Forwarded-For")
            }
            func reload(_ more: String, _ count: Int) throws {
                try scenario.configure(origin, rules: "[]", more: more)
                gateway.child.signal(SIGHUP)
                _ = try gateway.child.wait(for: "reload") { _, complained in
                    let done = complained.components(separatedBy: "reloaded").count - 1
                    return done >= count ? true : nil
                }
            }
            try expectEqual(told(1), ["192.0.2.1, 127.0.0.1"])
            try reload(limits, 1)
            try expectEqual(told(2), ["127.0.0.1"])
            // And the other way round, with the address's entry given back.
            try reload("trusted_proxies: [127.0.0.1]\n\(limits)", 2)
            try expectEqual(told(3), ["192.0.2.1, 127.0.0.1"])
            try reload("limits: { address_requests: 1/s, address_burst: 1 }", 3)
            try expectEqual(told(4), ["127.0.0.1"])
            try expectEqual(client.send("GET", "/").status, 429)
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `good requests cost nothing of it`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, _, key) = try scenario.start(
                rules: Self.rules,
                more: "limits: { address_failures: 1/m }"
            )
            let client = gateway.client()
            for _ in 0..<20 { try expectEqual(send(&key, client).status, 200) }
            try expectEqual(gateway.stop(), 0)
        }
    }
}
