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
    /// What of a request is never written down.
    @Suite(.ofApple) struct Secrets {
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              counter: strict
              sign: [method, target, body, challenge]
            - id: watched
              match: { path: /v1/watched }
              mode: observe
              sign: [method, target, body, challenge]
            """

        private static let signing = SigningForm.lines(.all, headers: [])

        /// All that a test has sent or got and that nobody else should read.
        private struct Confidences {
            private(set) var texts: [String] = []

            /// Bytes in each spelling that a log could have; long ones also by their beginning and
            /// their end, should a line cut them.
            mutating func add(_ bytes: [UInt8]) {
                for piece in [bytes, Array(bytes.prefix(24)), Array(bytes.suffix(24))] {
                    let base64 = Base64.text(piece).replacing("=", with: "")
                    texts.append(base64)
                    texts.append(base64.replacing("+", with: "-").replacing("/", with: "_"))
                    texts.append(Hex.text(piece))
                    texts.append(Hex.text(piece).uppercased())
                }
            }

            mutating func add(challenge text: String) {
                // The code is its last 24 characters and more.
                texts += [text, String(text.suffix(20))]
            }
        }

        private var confidences = Confidences()

        private static func request(_ path: String, _ challenge: String) -> SoftwareKey.Request {
            SoftwareKey.Request(
                method: "POST",
                target: path,
                content: Array(#"{"item":7}"#.utf8),
                challenge: challenge
            )
        }

        private mutating func challenge(
            _ purpose: String,
            _ gateway: GatewayProcess,
            _ client: HTTPClient
        ) throws -> String {
            let challenge = try gateway.challenges(purpose, client)[0]
            confidences.add(challenge: challenge)
            return challenge
        }

        /// Sends a signed request, keeps what was in it, and returns the answer.
        private mutating func send(
            _ client: HTTPClient,
            _ request: SoftwareKey.Request,
            _ key: inout SoftwareKey,
            damage: AssertionDamage? = nil
        ) throws -> Answer {
            let proof = key.proof(of: request, signing: Self.signing, damage: damage)
            confidences.add(Base64.decode(Array(proof.assertion.utf8).span) ?? [])
            confidences.add(key.keyID.bytes)
            let answer = try client.send(request, proof)
            if let next = answer.value("App-Attest-Challenge") { confidences.add(challenge: next) }
            return answer
        }

        private mutating func enrol(
            _ gateway: GatewayProcess,
            _ client: HTTPClient,
            _ key: SoftwareKey,
            damage: AttestationDamage? = nil,
            end: String = "}"
        ) throws -> Answer {
            let challenge = try challenge("enrolment", gateway, client)
            let object = key.attestation(
                clientDataHash: SHA256.digest(of: Array(challenge.utf8)).array,
                at: Scenario.now,
                damage: damage
            )
            confidences.add(object)
            confidences.add(key.keyID.bytes)
            let document =
                #"{"key_id":"\#(key.keyID.base64)","attestation":"\#(Base64.text(object))","#
                + #""challenge":"\#(challenge)""# + end
            let path = "/.well-known/app-attest/keys"
            return try client.send("POST", path, content: Array(document.utf8))
        }

        /// A request of each kind that is refused, and of those that are not.
        private mutating func sendAll(
            _ scenario: Scenario,
            _ gateway: GatewayProcess,
            _ client: HTTPClient
        ) throws -> Set<String> {
            var reasons: Set<String> = []
            var key = Scenario.device.makeKey()
            try expectEqual(enrol(gateway, client, key).status, 201)
            for damage in AttestationDamage.allCases {
                let other = Scenario.device.makeKey()
                reasons.insert(try enrol(gateway, client, other, damage: damage).reason)
            }
            reasons.insert(try enrol(gateway, client, Scenario.device.makeKey(), end: ",").reason)

            for path in ["/v1/orders", "/v1/watched"] {
                let fresh = Self.request(path, try challenge("assertion", gateway, client))
                let first = try send(client, fresh, &key)
                expectEqual(first.status, 200)
                reasons.insert(try send(client, fresh, &key).reason)
                for damage in AssertionDamage.allCases {
                    let next = try challenge("assertion", gateway, client)
                    let request = Self.request(path + "?token=\(next)", next)
                    reasons.insert(try send(client, request, &key, damage: damage).reason)
                }
                var stranger = Scenario.device.makeKey()
                reasons.insert(try send(client, fresh, &stranger).reason)
                let foreign = Self.request(path, String(repeating: "QUFB", count: 14))
                reasons.insert(try send(client, foreign, &key).reason)
            }
            reasons.formUnion(try sendMalformed(gateway, client, &key))
            let config = scenario.path("portcullis.yaml")
            let id = key.keyID.base64
            try expectEqual(scenario.portcullis("keys", "revoke", "--config", config, id).status, 0)
            let last = Self.request("/v1/orders", try challenge("assertion", gateway, client))
            reasons.insert(try send(client, last, &key).reason)
            return reasons
        }

        /// Proofs in requests that are no good for other reasons.
        private mutating func sendMalformed(
            _ gateway: GatewayProcess,
            _ client: HTTPClient,
            _ key: inout SoftwareKey
        ) throws -> Set<String> {
            var reasons: Set<String> = []
            let next = try challenge("assertion", gateway, client)
            let request = Self.request("/v1/orders", next)
            let proof = key.proof(of: request, signing: Self.signing)
            confidences.add(Base64.decode(Array(proof.assertion.utf8).span) ?? [])
            // Content that is not the one that was signed.
            var altered = request
            altered.content = Array(#"{"item":8}"#.utf8)
            reasons.insert(try client.send(altered, proof).reason)
            let name = proof.fields[0].name
            for fields in [
                proof.fields + [(name: name, value: proof.keyID)],
                proof.fields.map { ($0.name, $0.name == name ? $0.value + "!" : $0.value) },
                proof.fields.map { ($0.name, $0.value + $0.value) },
                proof.fields + [(name: "broken name", value: proof.assertion)],
                proof.fields + [(name: "Transfer-Encoding", value: "gzip")],
            ] {
                let answer = try client.send("POST", "/v1/orders", fields, content: [1])
                reasons.insert(answer.reason)
                client.close()
            }
            return reasons
        }

        @Test
        mutating func
            `key ids, assertions, challenges and attestations are in no log and on no page`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules, more: "log: { level: trace }")
            let gateway = try scenario.serve()
            let client = gateway.client()
            let reasons = try sendAll(scenario, gateway, client)
            for reason in [
                "signature-mismatch", "counter-replayed", "app-mismatch", "key-unknown",
                "challenge-unknown", "digest-mismatch", "key-revoked", "nonce-mismatch",
                "certificate-untrusted",
            ] {
                #expect(reasons.contains(reason), "\(reason) not among \(reasons.sorted())")
            }

            let admin = try gateway.adminClient()
            var written: [(name: String, text: String)] = []
            for page in ["/metrics", "/status"] {
                let answer = try admin.send("GET", page)
                expectEqual(answer.status, 200)
                written.append((page, answer.text))
            }
            try expectEqual(gateway.stop(), 0)
            written.append(("the access log", gateway.child.printed))
            written.append(("the gateway's messages", gateway.child.complained))
            // The log is there, and names the key by its short hash alone.
            #expect(gateway.child.printed.contains("\"signature-mismatch\""))
            #expect(gateway.child.printed.contains("\"key\":\""))
            for (name, text) in written {
                #expect(!text.isEmpty)
                let found = confidences.texts.first { text.contains($0) }
                expectEqual(found, nil, "\(name)")
            }
        }

        /// OpenSSL's texts go into messages.
        @Test func `a TLS key is in no message, whatever is wrong with it`() throws {
            guard let openssl = Scenario.tool("openssl") else { return }
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            // The listener is replaced below.
            try ClientSide.$current.withValue(.http1) {
                try scenario.configure(origin, rules: Self.rules, more: "log: { level: trace }")
            }
            for name in ["one", "other"] {
                let arguments = [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-subj", "/CN=localhost", "-keyout", "\(name).key", "-out",
                    "\(name).pem",
                ]
                try expectEqual(scenario.run(openssl, arguments).status, 0)
            }
            let config = scenario.path("portcullis.yaml")
            let plain = try String(contentsOfFile: config, encoding: .utf8)
            let secured = plain.replacing(
                "- address: 127.0.0.1:0",
                with: "- { address: '127.0.0.1:0', tls: { certificate: one.pem, key: key.pem } }"
            )
            try scenario.write("portcullis.yaml", secured)
            let file = scenario.path("one.key")
            let key = try String(contentsOfFile: file, encoding: .utf8)
            let other = try String(contentsOfFile: scenario.path("other.key"), encoding: .utf8)
            let lines = (key + other).split(separator: "\n").filter { !$0.hasPrefix("-") }
            #expect(lines.count >= 4)
            let broken = key.replacing("\nM", with: "\nN")
            var messages = ""
            let short = String(key.dropLast(40))
            for (text, mode) in [(other, 0o600), (broken, 0o600), (short, 0o600), (key, 0o644)] {
                try scenario.write("key.pem", text)
                try setMode(scenario.path("key.pem"), mode)
                let served = try scenario.portcullis("serve", config)
                expectEqual(served.status, 1)
                messages += served.printed + served.complained
            }
            try scenario.write("key.pem", key)
            try setMode(scenario.path("key.pem"), 0o600)
            let gateway = try scenario.serve()
            try expectEqual(gateway.stop(), 0)
            messages += gateway.child.printed + gateway.child.complained
            #expect(messages.contains("the key that this certificate was made for"))
            #expect(messages.contains("open to every user of this host"))
            for line in lines { #expect(!messages.contains(line)) }
        }

        private func setMode(_ path: String, _ mode: Int) throws {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }
    }
}
