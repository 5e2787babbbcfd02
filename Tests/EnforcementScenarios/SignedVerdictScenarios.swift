import Cryptography
import DeviceKey
import Encodings
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import Signatures
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// `verdict: { jwt: … }`: what an origin can check that is not shut off from other callers.
    @Suite struct SignedVerdicts {
        private static let rules = """
            - id: held
              match: { path: /held }
              mode: enforce
              body: { digest: held, limit: 1MiB, memory: 64KiB }
            - id: bare
              match: { path: /bare }
              mode: observe
              sign: [method, target, challenge]
            - id: watched
              match: { path: /watched }
              mode: observe
            - { id: off, match: { path: /off }, mode: off }
            """

        /// The gateway's claims in a token that its key has signed.
        private func claims(
            of text: String,
            _ keySet: Data,
            audience: String = "shop"
        ) throws -> [String: String] {
            let pieces = text.split(separator: ".").map(String.init)
            try #require(pieces.count == 3)
            let document = try JSONSerialization.jsonObject(with: keySet) as? [String: Any]
            let web = try #require((document?["keys"] as? [[String: String]])?.first)
            func number(_ name: String) throws -> [UInt8] {
                try #require(web[name].flatMap { Base64.decode($0) })
            }
            let point = [4] + (try number("x")) + (try number("y"))
            let key = try #require(P256PublicKey(x963: point))
            let code = try #require(Base64.decode(pieces[2]))
            let signed = Array("\(pieces[0]).\(pieces[1])".utf8)
            let isValid = key.isValidJOSESignature(code.span, message: signed.span)
            #expect(isValid)
            let claims = try #require(Base64.decode(pieces[1]))
            let all = try JSONSerialization.jsonObject(with: Data(claims)) as? [String: Any]
            #expect(all?["aud"] as? String == audience)
            return try #require(all?["portcullis"] as? [String: String])
        }

        /// An origin that gets signed verdicts.
        ///
        /// - settings: of the section, beside the key.
        /// - more: further sections.
        private func origin(
            of scenario: Scenario,
            _ settings: String,
            rules: String? = nil,
            more: String = ""
        ) throws -> RecordingOrigin {
            try scenario.write("verdict.pem", P256PrivateKey().key.pem)
            expectEqual(chmod(scenario.path("verdict.pem"), 0o600), 0)
            let origin = try scenario.origin()
            try scenario.configure(
                origin,
                rules: rules ?? Self.rules,
                more: "verdict: { jwt: { key: verdict.pem, \(settings) } }\n\(more)"
            )
            return origin
        }

        @Test func `an origin can tell the gateway's requests from those of others`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try origin(of: scenario, "audience: shop, publish: on")
            var key = try scenario.imported()[0]
            let gateway = try scenario.serve()
            let client = gateway.client()
            let forged: [(name: String, value: String)] = [
                ("App-Attest-Verdict-Token", "forged"), ("App_Attest_Verdict_Token", "forged"),
            ]
            // Beside the head, held in memory, in a file.
            let contents = [0, 20, 3_000, 200_000].map { [UInt8](repeating: 0x61, count: $0) }
            for content in contents {
                let held = SoftwareKey.Request(
                    method: "POST",
                    target: "/held?dry=1",
                    content: content,
                    challenge: try gateway.challenges("assertion", client)[0]
                )
                let proof = key.proof(of: held, signing: .lines(.all, headers: []))
                try expectEqual(client.send(held, proof, more: forged).status, 200)
            }
            try expectEqual(client.send("GET", "/bare", forged).status, 200)
            try expectEqual(client.send("GET", "/off", forged).status, 200)
            let seen = try origin.seen(6).map(\.head)
            for head in seen { #expect(head.all("App_Attest_Verdict_Token").isEmpty) }

            let set = try gateway.adminClient().send("GET", "/jwks")
            let shown = try client.send("GET", "/.well-known/app-attest/jwks")
            expectEqual(shown.status, 200)
            expectEqual(shown.body, set.body)
            let tokens = seen.map { $0.all("App-Attest-Verdict-Token") }
            expectEqual(tokens.map(\.count), [1, 1, 1, 1, 1, 0])
            for (content, token) in zip(contents, tokens) {
                let told = try claims(of: token[0], Data(set.body))
                expectEqual(told["verdict"], "pass")
                expectEqual(told["rule"], "held")
                expectEqual(told["host"], told["host"]?.lowercased())
                #expect(told["host"]?.isEmpty == false)
                expectEqual(told["origin"], "shop")
                expectEqual(told["method"], "POST")
                expectEqual(told["target"], "/held?dry=1")
                let digest = Base64.text(SHA256.digest(of: content).array)
                expectEqual(told["content"], "sha-256=:\(digest):", "\(content.count)")
                expectEqual(told["key_id"], key.keyID.base64)
            }
            let bare = try claims(of: tokens[4][0], Data(set.body))
            expectEqual(bare["verdict"], "refuse")
            expectEqual(bare["reason"], "assertion-missing")
            expectEqual(bare["content"], nil)
            expectEqual(bare["key_id"], nil)
        }

        /// A rule that observes forwards content before it has come, and whatever it is.
        @Test func `a token claims no content that was not verified`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try origin(of: scenario, "audience: shop")
            var key = try scenario.imported()[0]
            let gateway = try scenario.serve()
            let client = gateway.client()
            let contents = [20, 3_000, 200_000].map { [UInt8](repeating: 0x61, count: $0) }
            for content in contents {
                // Without a proof, with another's signature, and with one that is used already.
                let bare = try client.send("POST", "/watched", [], content: content)
                expectEqual(bare.status, 200)
                var request = SoftwareKey.Request(
                    method: "POST",
                    target: "/watched",
                    content: content,
                    challenge: try gateway.challenges("assertion", client)[0]
                )
                let used = key.proof(of: request, signing: .lines(.all, headers: []))
                try expectEqual(client.send(request, used).status, 200)
                request.content[0] ^= 1
                try expectEqual(client.send(request, used).status, 200)
            }
            let set = try gateway.adminClient().send("GET", "/jwks")
            let seen = try origin.seen(9)
            for (place, request) in seen.enumerated() {
                let token = try #require(request.head.all("App-Attest-Verdict-Token").first)
                let told = try claims(of: token, Data(set.body))
                let isVerified = place % 3 == 1
                expectEqual(told["verdict"], isVerified ? "pass" : "refuse", "\(place)")
                expectEqual((told["content"] != nil), isVerified, "\(place) \(told)")
            }
        }

        @Test func `an origin can tell its tokens from those of another origin`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let till = try scenario.origin()
            try scenario.write("verdict.pem", P256PrivateKey().key.pem)
            expectEqual(chmod(scenario.path("verdict.pem"), 0o600), 0)
            let shop = try scenario.origin()
            try scenario.configure(
                origin: shop.address,
                rules: """
                    - id: till
                      match: { host: till.example.com, path: /bare }
                      origin: till
                      mode: observe
                      sign: [method, target, challenge]
                    - id: shop
                      match: { path: /bare }
                      mode: observe
                      sign: [method, target, challenge]
                    """,
                more: "verdict: { jwt: { key: verdict.pem, audience: shop } }",
                origins: "  till: { servers: [\"\(till.address)\"], audience: cash }"
            )
            _ = try scenario.imported()
            let gateway = try scenario.serve()
            let client = HTTPClient(port: gateway.port)
            for host in ["till.example.com", "Shop.Example.com:8443"] {
                let raw = "GET /bare HTTP/1.1\r\nHost: \(host)\r\n\r\n"
                try expectEqual(client.send(raw: Array(raw.utf8)).status, 200)
            }
            let set = Data(try gateway.adminClient().send("GET", "/jwks").body)
            for (origin, name, audience, host) in [
                (till, "till", "cash", "till.example.com"),
                (shop, "shop", "shop", "Shop.Example.com:8443"),
            ] {
                let head = try origin.seen(1)[0].head
                let token = try #require(head.all("App-Attest-Verdict-Token").first)
                let told = try claims(of: token, set, audience: audience)
                expectEqual(told["origin"], name)
                expectEqual(told["host"], host)
            }
        }

        @Test func `a token names the target that the origin gets, whatever its form was`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try origin(of: scenario, "audience: shop")
            _ = try scenario.imported()
            let gateway = try scenario.serve()
            let client = HTTPClient(port: gateway.port)
            for target in ["http://api.example.com/bare?x=1", "/bare?x=2"] {
                let raw = "GET \(target) HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
                try expectEqual(client.send(raw: Array(raw.utf8)).status, 200)
            }
            let set = try gateway.adminClient().send("GET", "/jwks")
            let seen = try origin.seen(2)
            expectEqual(seen.map(\.target), ["/bare?x=1", "/bare?x=2"])
            for request in seen {
                let token = try #require(request.head.all("App-Attest-Verdict-Token").first)
                try expectEqual(claims(of: token, Data(set.body))["target"], request.target)
            }
        }

        @Test func `a token in the place of a signature verifies no content`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.write("keys.json", TokenIssuer.set(.init("one")))
            let origin = try origin(
                of: scenario,
                "audience: shop",
                rules: """
                    - id: both
                      match: { path: /both }
                      mode: enforce
                      accept: [assertion, app-check]
                    """,
                more: """
                    proofs:
                      app-check:
                        kind: jwt
                        field: X-Firebase-AppCheck
                        issuer: "\(TokenIssuer.name)"
                        audience: shop
                        algorithms: [ES256]
                        keys: { file: \(scenario.path("keys.json")) }
                    """
            )
            _ = try scenario.imported()
            let gateway = try scenario.serve()
            let client = gateway.client()
            // Beside the head, and after it.
            let contents = [20, 200_000].map { [UInt8](repeating: 0x61, count: $0) }
            for content in contents {
                let token = ("X-Firebase-AppCheck", TokenIssuer.token())
                let answer = try client.send("POST", "/both", [token], content: content)
                expectEqual(answer.status, 200, "\(answer.text)")
            }
            let set = try gateway.adminClient().send("GET", "/jwks")
            for request in try origin.seen(2) {
                let token = try #require(request.head.all("App-Attest-Verdict-Token").first)
                let told = try claims(of: token, Data(set.body))
                expectEqual(told["verdict"], "pass")
                expectEqual(told["proof"], "app-check")
                expectEqual(told["content"], nil)
            }
        }

        @Test func `without the section there is no token and no key`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            _ = try scenario.imported()
            let gateway = try scenario.serve()
            let client = gateway.client()
            try expectEqual(client.send("GET", "/bare").status, 200)
            #expect(try origin.seen(1)[0].head.all("App-Attest-Verdict-Token").isEmpty)
            try expectEqual(client.send("GET", "/.well-known/app-attest/jwks").status, 404)
            try expectEqual(gateway.adminClient().send("GET", "/jwks").status, 404)
        }
    }
}
