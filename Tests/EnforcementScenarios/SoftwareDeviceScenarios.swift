import AppAttest
import Cryptography
import Encodings
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// The whole life of a key, as an app would lead it.
    @Suite struct SoftwareDevices {
        static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              sign: [method, target, body, challenge]
              headers: [idempotency-key]
            - id: watched
              match: { path: /v1/watched }
              mode: observe
              sign: [method, target]
            """

        static let signing = SigningForm.lines(.all, headers: ["idempotency-key"])

        static func request(_ challenge: String, content: String = #"{"item":7}"#)
            -> SoftwareKey.Request
        {
            SoftwareKey.Request(
                method: "POST",
                target: "/v1/orders?dry=1",
                content: Array(content.utf8),
                challenge: challenge,
                fields: ["idempotency-key": "8e03978e"]
            )
        }

        private func start(_ scenario: Scenario) throws -> (GatewayProcess, RecordingOrigin) {
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            return (try scenario.serve(), origin)
        }

        @Test func `a device enrols, signs, and goes on with the challenge of the answer`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (gateway, origin) = try start(scenario)
            let client = gateway.client()
            var key = Scenario.device.makeKey()

            let first = try gateway.enrol(key, client)
            expectEqual(first.status, 201)
            expectEqual(first.member("key_id"), key.keyID.base64)
            expectEqual(first.value("Cache-Control"), "no-store")
            try expectEqual(gateway.enrol(key, client).status, 200)

            var challenge = try gateway.challenges("assertion", client)[0]
            for number in 1...5 {
                let request = Self.request(challenge)
                let answer = try client.send(request, key.proof(of: request, signing: Self.signing))
                expectEqual(answer.status, 200)
                challenge = try #require(answer.value("App-Attest-Challenge"))
                let seen = try #require(try origin.seen(number).last)
                #expect(seen.isComplete)
                expectEqual(seen.target, "/v1/orders?dry=1")
                expectEqual(seen.digest, SHA256.digest(of: request.content))
                expectEqual(seen.head.all("App-Attest-Verdict"), ["pass"])
                expectEqual(seen.head.all("App-Attest-Key-Id"), [key.keyID.base64])
                expectEqual(seen.head.all("App-Attest-App-Id"), [Scenario.appID])
                expectEqual(seen.head.all("App-Attest-Environment"), ["test"])
                expectEqual(seen.head.all("App-Attest-Reason"), [])
                expectEqual(seen.head.all("App-Attest-Assertion"), [])
                expectEqual(seen.head.all("App-Attest-Challenge"), [])
                expectEqual(seen.head.all("Idempotency-Key"), ["8e03978e"])
            }
            // The counter stayed where it was although the key enrols again.
            try expectEqual(gateway.enrol(key, client).status, 200)
            let request = Self.request(challenge)
            let answer = try client.send(request, key.proof(of: request, signing: Self.signing))
            expectEqual(answer.status, 200)
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `a refused request says what to do next, and doing it helps`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (gateway, origin) = try start(scenario)
            let client = gateway.client()
            var key = Scenario.device.makeKey()

            // Nothing at all: sign.
            let bare = try client.send("POST", "/v1/orders?dry=1", content: [1])
            expectEqual(bare.status, 401)
            expectEqual(bare.reason, "assertion-missing")
            expectEqual(bare.member("next"), "sign-again")
            expectEqual(bare.value("Content-Type"), "application/problem+json")
            let challenge = try #require(bare.member("challenge"))
            expectEqual(bare.value("WWW-Authenticate")?.contains(challenge), true)

            // Signed with an unknown key: enrol.
            let request = Self.request(challenge)
            let unknown = try client.send(request, key.proof(of: request, signing: Self.signing))
            expectEqual(unknown.status, 401)
            expectEqual(unknown.reason, "key-unknown")
            expectEqual(unknown.member("next"), "enrol")
            expectEqual(unknown.member("challenge"), nil)
            try expectEqual(gateway.enrol(key, client).status, 201)

            // The challenge was not spent by that.
            let proof = key.proof(of: request, signing: Self.signing)
            try expectEqual(client.send(request, proof).status, 200)

            // A replay: sign again, with the challenge that came along.
            let replay = try client.send(request, proof)
            expectEqual(replay.status, 401)
            expectEqual(replay.reason, "counter-replayed")
            let next = Self.request(try #require(replay.member("challenge")))
            let again = try client.send(next, key.proof(of: next, signing: Self.signing))
            expectEqual(again.status, 200)

            // The same challenge under a new signature.
            let spent = try client.send(request, key.proof(of: request, signing: Self.signing))
            expectEqual(spent.status, 401)
            expectEqual(spent.reason, "challenge-spent")
            expectEqual(origin.seen.count, 2)
        }

        @Test func `what was signed can't be changed on the way`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (gateway, origin) = try start(scenario)
            let client = gateway.client()
            var key = Scenario.device.makeKey()
            try expectEqual(gateway.enrol(key, client).status, 201)
            typealias Sending = (
                method: String, target: String, fields: [(name: String, value: String)],
                content: [UInt8]
            )
            let edits: [(String, Int, String, (inout Sending) -> Void)] = [
                ("method", 403, "signature-mismatch", { $0.method = "PUT" }),
                ("query", 403, "signature-mismatch", { $0.target = "/v1/orders?dry=0" }),
                (
                    "signed field", 403, "signature-mismatch",
                    { sending in
                        sending.fields.removeAll { $0.name == "idempotency-key" }
                    }
                ),
                ("content", 400, "digest-mismatch", { $0.content[3] ^= 1 }),
                (
                    "content and digest", 403, "signature-mismatch",
                    { sending in
                        sending.content[3] ^= 1
                        let digest = Base64.text(SHA256.digest(of: sending.content).array)
                        sending.fields.removeAll { $0.name == "Content-Digest" }
                        sending.fields.append(("Content-Digest", "sha-256=:\(digest):"))
                    }
                ),
            ]
            for (name, status, reason, edit) in edits {
                let request = Self.request(try gateway.challenges("assertion", client)[0])
                let proof = key.proof(of: request, signing: Self.signing)
                var sending: Sending = (
                    request.method, request.target,
                    proof.fields + request.fields.map { ($0.key, $0.value) }, request.content
                )
                edit(&sending)
                let answer = try client.send(
                    sending.method,
                    sending.target,
                    sending.fields,
                    content: sending.content
                )
                expectEqual(answer.status, status, "\(name)")
                expectEqual(answer.reason, reason, "\(name)")
            }
            #expect(origin.seen.filter(\.isComplete).isEmpty)
        }

        @Test func `no field of the client passes for a verdict`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (gateway, origin) = try start(scenario)
            let client = gateway.client()
            let names = ["Verdict", "Reason", "Key-Id", "App-Id", "Environment", "Anything"]
            let forged = names.flatMap { name -> [(name: String, value: String)] in
                let whole = "App-Attest-\(name)"
                return [
                    whole, whole.uppercased(), whole.lowercased(),
                    whole.replacing("-", with: "_"), "App_Attest-\(name)", "X-\(whole)",
                ].map { ($0, "forged") }
            }
            let watched = try client.send("GET", "/v1/watched", forged)
            expectEqual(watched.status, 200)
            let off = try client.send("GET", "/elsewhere", forged)
            expectEqual(off.status, 200)
            let seen = try origin.seen(2)
            for request in seen {
                let left = request.head.fields.filter { $0.value.contains("forged") }
                expectEqual(left.map(\.name), [])
            }
            expectEqual(seen[0].head.all("App-Attest-Verdict"), ["refuse"])
            // Two key ids leave open which one is meant.
            #expect(
                ["assertion-malformed", "assertion-missing"].contains(
                    seen[0].head.value("App-Attest-Reason")
                )
            )
            expectEqual(seen[1].head.all("App-Attest-Verdict"), [])
        }

        @Test func `whoever is observed is forwarded with what the verdict would be`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (gateway, origin) = try start(scenario)
            let client = gateway.client()
            var key = Scenario.device.makeKey()
            try expectEqual(gateway.enrol(key, client).status, 201)
            let signing = SigningForm.lines([.method, .target], headers: [])
            let request = SoftwareKey.Request(method: "GET", target: "/v1/watched")
            let good = key.proof(of: request, signing: signing)
            let bad = key.proof(of: request, signing: signing, damage: .signature)
            for proof in [good, good, bad] {
                try expectEqual(client.send(request, proof).status, 200)
            }
            try expectEqual(client.send("GET", "/v1/watched").status, 200)
            let verdicts = try origin.seen(4).map { request in
                ["Verdict", "Reason", "Key-Id"].map {
                    request.head.all("App-Attest-\($0)").joined(separator: ",")
                }
            }
            expectEqual(
                verdicts,
                [
                    ["pass", "", key.keyID.base64], ["refuse", "counter-replayed", ""],
                    ["refuse", "signature-mismatch", ""], ["refuse", "assertion-missing", ""],
                ]
            )
        }

        @Test(.ofApple)
        func `a damaged attestation is refused over the wire, and no key comes of it`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (gateway, _) = try start(scenario)
            let client = gateway.client()
            let key = Scenario.device.makeKey()
            for damage in [AttestationDamage.otherNonce, .untrustedRoot, .otherApp, .truncated] {
                let answer = try gateway.enrol(key, client, damage: damage)
                expectEqual(answer.reason, damage.refusal.rawValue)
                // SHA-256 of the App ID in which it was attested.
                let foreign = AppIDHash(appID: Scenario.device.appID + ".other")
                let named = #""app_id_sha256":["\#(Hex.text(foreign.bytes))"]"#
                expectEqual(answer.text.contains(named), damage == .otherApp)
            }
            let config = scenario.path("portcullis.yaml")
            try expectEqual(scenario.portcullis("keys", "list", "--config", config).printed, "")
            try expectEqual(gateway.enrol(key, client).status, 201)
            let listed = try scenario.portcullis("keys", "list", "--config", config).printed
            #expect(listed.hasPrefix(key.keyID.base64 + "\t\(Scenario.appID)\ttest\tactive\t0\t"))
        }
    }
}
