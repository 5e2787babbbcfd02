import Foundation
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
            let origin = try scenario.origin()
            try scenario.configure(
                origin,
                rules: Self.rules,
                more: "limits: { address_failures: 3/m }"
            )
            var key = try scenario.imported()[0]
            let gateway = try scenario.serve()
            let client = gateway.client()
            for _ in 0..<3 {
                let answer = try send(&key, client, damage: .signature)
                #expect(answer.reason == "signature-mismatch")
            }
            // Good or bad, what would cost a verification waits; what costs none is answered.
            let refused = try send(&key, client)
            #expect(refused.status == 429)
            #expect(refused.reason == "address-throttled")
            #expect(refused.member("next") == "retry-later")
            let wait = try #require(refused.value("Retry-After").flatMap { Int($0) })
            #expect((1...21).contains(wait))
            var stranger = Scenario.device.makeKey()
            #expect(try send(&stranger, client).reason == "key-unknown")
            #expect(try client.send("GET", "/enforced").reason == "assertion-missing")
            #expect(try client.send("GET", "/").status == 200)
            // A bad attestation costs as much as a bad signature, so it waits as well.
            let enrolment = try gateway.enrol(stranger, client)
            #expect(enrolment.status == 429)
            #expect(enrolment.reason == "address-throttled")
            // Observed requests go on, without a verdict about their signature.
            #expect(try send(&key, client, "/observed").status == 200)
            let seen = try #require(try origin.seen(2).last)
            #expect(seen.head.all("App-Attest-Verdict") == ["refuse"])
            #expect(seen.head.all("App-Attest-Reason") == ["address-throttled"])
            #expect(try gateway.stop() == 0)
        }

        @Test func `behind a trusted proxy the failures are those of the client that it names`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(
                try scenario.origin(),
                rules: Self.rules,
                more: "trusted_proxies: [127.0.0.1]\nlimits: { address_failures: 2/m }"
            )
            var key = try scenario.imported()[0]
            let gateway = try scenario.serve()
            let client = gateway.client()
            for _ in 0..<2 {
                let bad = try send(&key, client, damage: .signature, from: "192.0.2.1")
                #expect(bad.status == 403)
            }
            #expect(try send(&key, client, from: "192.0.2.1").status == 429)
            #expect(try send(&key, client, from: "192.0.2.2").status == 200)
            // Nobody is named: nobody's failures are counted.
            for _ in 0..<5 { #expect(try send(&key, client, damage: .signature).status == 403) }
            #expect(try send(&key, client).status == 200)
            #expect(try gateway.stop() == 0)
        }

        @Test func `good requests cost nothing of it`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(
                try scenario.origin(),
                rules: Self.rules,
                more: "limits: { address_failures: 1/m }"
            )
            var key = try scenario.imported()[0]
            let gateway = try scenario.serve()
            let client = gateway.client()
            for _ in 0..<20 { #expect(try send(&key, client).status == 200) }
            #expect(try gateway.stop() == 0)
        }
    }
}
