import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// What was signed of a request's fields is what the origin reads, whatever it is written in.
    @Suite(.overEachClient) struct SignedFields {
        private static let signing = SigningForm.lines(
            [.method, .target],
            headers: ["idempotency-key", "x.version"]
        )

        private static let rules = """
            - id: enforced
              match: { path: /enforced }
              mode: enforce
              sign: [method, target]
              headers: [idempotency-key, x.version]
            - id: observed
              match: { path: /observed }
              mode: observe
              sign: [method, target]
              headers: [idempotency-key, x.version]
            - id: renamed
              match: { path: /renamed }
              mode: enforce
              sign: [method, target]
              fields: { key_id: X-My-Key, assertion: X-My-Assertion }
            """

        private static let value = "abc, def"

        /// A gateway with these rules, its origin and a key.
        private final class Stage {
            let scenario: Scenario
            let origin: RecordingOrigin
            let gateway: GatewayProcess
            let client: HTTPClient
            var key: SoftwareKey

            init() throws {
                scenario = try Scenario()
                origin = try scenario.origin()
                try scenario.configure(origin, rules: SignedFields.rules)
                key = try scenario.imported()[0]
                gateway = try scenario.serve()
                client = gateway.client()
            }

            /// Sends what is signed with these lines instead of the signed field's.
            func send(
                _ path: String = "/enforced",
                method: String = "GET",
                _ lines: [(String, String)]
            ) throws -> Answer {
                let signed = SoftwareKey.Request(
                    method: method,
                    target: path,
                    content: [],
                    challenge: nil,
                    fields: ["idempotency-key": SignedFields.value, "x.version": "1"]
                )
                let proof = key.proof(of: signed, signing: SignedFields.signing)
                return try client.send(method, path, proof.fields + lines)
            }
        }

        private static let field = [("Idempotency-Key", value), ("X.Version", "1")]

        private static let paths = ["/enforced", "/observed"]

        private static let options = [
            "idempotency-key", "keep-alive, IDEMPOTENCY-Key", "x.version",
        ]

        @Test func `Connection can't strip a signed field after it was verified`() throws {
            let stage = try Stage()
            defer { stage.scenario.end() }
            for (number, path) in Self.paths.enumerated() {
                try expectEqual(stage.send(path, Self.field).status, 200)
                // Another field may still be of this hop only.
                let other = Self.field + [("Connection", "X-Hop"), ("X-Hop", "1")]
                try expectEqual(stage.send(path, other).status, 200)
                let seen = try stage.origin.seen(2 * number + 2).dropFirst(2 * number)
                expectEqual(seen.count, 2, "\(path)")
                for one in seen {
                    expectEqual(one.head.all("Idempotency-Key"), [Self.value])
                    expectEqual(one.head.all("App-Attest-Verdict"), ["pass"])
                    #expect(one.head.all("X-Hop").isEmpty)
                }
            }
            for option in Self.options {
                let answer = try stage.send("/enforced", Self.field + [("Connection", option)])
                expectEqual(answer.status, 400, "\(option)")
                expectEqual(answer.reason, "connection-nomination")
            }
            expectEqual(stage.origin.seen.count, 4)
            try expectEqual(stage.gateway.stop(), 0)
        }

        @Test func `a rule that observes forwards what Connection strips, and never as a pass`()
            throws
        {
            let stage = try Stage()
            defer { stage.scenario.end() }
            for (number, option) in Self.options.enumerated() {
                let sent = Self.field + [("Connection", option)]
                try expectEqual(stage.send("/observed", sent).status, 200, "\(option)")
                let seen = try #require(try stage.origin.seen(number + 1).last)
                expectEqual(seen.head.all("App-Attest-Verdict"), ["refuse"], "\(option)")
                expectEqual(seen.head.all("App-Attest-Reason"), ["connection-nomination"])
            }
            try expectEqual(stage.gateway.stop(), 0)
        }

        @Test func `Connection can't strip what every hop needs`() throws {
            let stage = try Stage()
            defer { stage.scenario.end() }
            for option in [
                "App-Attest-Assertion", "App-Attest-Verdict", "X-Forwarded-For", "Content-Digest",
                "Host", "Content-Length", "X-My-Assertion", "x-my-key",
            ] {
                let signed = SoftwareKey.Request(
                    method: "GET",
                    target: "/renamed",
                    content: [],
                    challenge: nil
                )
                let proof = stage.key.proof(
                    of: signed,
                    signing: .lines([.method, .target], headers: [])
                )
                let renamed = proof.fields.map { name, value in
                    (name.lowercased().hasSuffix("key-id") ? "X-My-Key" : "X-My-Assertion", value)
                }
                let digest = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
                let answer = try stage.client.send(
                    "GET",
                    "/renamed",
                    renamed + [("Content-Digest", digest), ("Connection", option)]
                )
                expectEqual(answer.status, 400, "\(option)")
                expectEqual(answer.reason, "connection-nomination", "\(option)")
                #expect(stage.origin.seen.isEmpty, "\(option)")
            }
            try expectEqual(stage.gateway.stop(), 0)
        }

        /// What an application reads of a field, by the server that runs it.
        private func readings(_ head: WireHead, _ name: String) -> [String?] {
            func variable(_ name: String) -> String {
                String(
                    name.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" }
                )
            }
            let cgi = head.fields.filter { variable($0.name) == variable(name) }.map(\.value)
            let own = head.fields.filter { $0.name.lowercased() == name }.map(\.value)
            return [
                // lighttpd-CGI and php -S: all but letters and digits folded; the last line wins.
                cgi.last,
                // The same where the first line wins, and where lines are joined (Apache).
                cgi.first, cgi.joined(separator: ", "),
                // WSGI (Flask, Django), joined with a comma; Node (Express) with a comma and space.
                own.joined(separator: ","), own.joined(separator: ", "),
                // Go and Java: the first line.
                own.first,
            ]
        }

        @Test func `no other spelling of a signed field reaches the origin`() throws {
            let stage = try Stage()
            defer { stage.scenario.end() }
            let twins = [
                "Idempotency.Key", "idempotency_key", "IDEMPOTENCY~KEY", "Idempotency!Key",
                "idempotency^key", "X-Version", "x_version", "X~Version",
            ].map { ($0, "evil") }
            for (number, path) in Self.paths.enumerated() {
                try expectEqual(stage.send(path, twins + Self.field + twins).status, 200, "\(path)")
                let head = try stage.origin.seen(number + 1)[number].head
                expectEqual(head.all("App-Attest-Verdict"), ["pass"])
                for reading in readings(head, "idempotency-key") {
                    expectEqual(reading, Self.value)
                }
                for reading in readings(head, "x.version") { expectEqual(reading, "1") }
            }
            try expectEqual(stage.gateway.stop(), 0)
        }

        @Test func `a signed field that comes in two lines is refused`() throws {
            let stage = try Stage()
            defer { stage.scenario.end() }
            let version = ("X.Version", "1")
            let split = [("Idempotency-Key", "abc"), ("Idempotency-Key", "def"), version]
            let refused = try stage.send("/enforced", split)
            expectEqual(refused.status, 400)
            expectEqual(refused.reason, "signed-field-repeated")
            expectEqual(refused.member("next"), "fix-client")
            #expect(stage.origin.seen.isEmpty)
            // Where it is only observed the origin is told.
            try expectEqual(stage.send("/observed", split).status, 200)
            let head = try stage.origin.seen(1)[0].head
            expectEqual(head.all("App-Attest-Verdict"), ["refuse"])
            expectEqual(head.all("App-Attest-Reason"), ["signed-field-repeated"])
            // In one line it arrives as it was signed, to every reader.
            try expectEqual(stage.send("/enforced", Self.field).status, 200)
            let good = try stage.origin.seen(2)[1].head
            for reading in readings(good, "idempotency-key") { expectEqual(reading, Self.value) }
            try expectEqual(stage.gateway.stop(), 0)
        }

        @Test func `what is verified of OPTIONS http://host is the star that is sent`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(
                origin,
                rules: """
                    - id: all
                      match: { path: /** }
                      mode: enforce
                      sign: [method, target]
                    """
            )
            var key = try scenario.imported()[0]
            let gateway = try scenario.serve()
            func send(signing target: String, _ line: String) throws -> Int {
                let request = SoftwareKey.Request(
                    method: "OPTIONS",
                    target: target,
                    content: [],
                    challenge: nil
                )
                let proof = key.proof(
                    of: request,
                    signing: .lines([.method, .target], headers: [])
                )
                let fields = proof.fields.map { "\($0.0): \($0.1)\r\n" }.joined()
                let head = "OPTIONS \(line) HTTP/1.1\r\nHost: a\r\n\(fields)\r\n"
                return try gateway.client().send(raw: Array(head.utf8)).status
            }
            try expectEqual(send(signing: "/", "http://a"), 403)
            #expect(origin.seen.isEmpty)
            try expectEqual(send(signing: "*", "http://a"), 200)
            try expectEqual(send(signing: "*", "*"), 200)
            try expectEqual(send(signing: "/", "http://a/"), 200)
            try expectEqual(send(signing: "/?x", "http://a?x"), 200)
            try expectEqual(origin.seen(4).map(\.target), ["*", "*", "/", "/?x"])
            try expectEqual(gateway.stop(), 0)
        }
    }
}
