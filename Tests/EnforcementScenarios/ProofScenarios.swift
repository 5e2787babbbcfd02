import AppAttest
import AppleStandIn
import Expectations
import Foundation
import LoopbackKit
import Parties
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Tokens of another issuer, whose keys come from a stand-in.
    @Suite(.enabled(if: Scenario.isPossible)) struct Proofs {
        private static let rules = """
            - id: both
              match: { path: /both/** }
              mode: enforce
              apps: [APP]
              counter: { window: 64 }
              sign: [method, target]
              accept: [assertion, app-check]
            - id: ours
              match: { path: /ours/** }
              mode: enforce
              apps: [APP]
              sign: [method, target]
            - id: theirs
              match: { path: /theirs/** }
              mode: enforce
              accept: [app-check]
            - id: page
              match: { path: /page/** }
              mode: enforce
              accept: [cookie]
            - id: bearer
              match: { path: /bearer/** }
              mode: enforce
              accept: [access]
            - id: typed
              match: { path: /typed/** }
              mode: enforce
              accept: [typed]
            - id: beside
              match: { path: /beside/** }
              mode: enforce
              apps: [APP]
              sign: [method, target]
              also: [app-check]
            - id: bound
              match: { path: /bound/** }
              mode: enforce
              apps: [APP]
              sign: [method, target]
              headers: [x-firebase-appcheck]
              also: [app-check]
            - id: old
              match: { path: /old/** }
              mode: enforce
              apps: [APP]
              sign: [method, target]
              unsupported: { require: app-check }
            - id: once
              match: { path: /once/** }
              mode: enforce
              accept: [once]
            - id: away
              match: { path: /away/** }
              mode: enforce
              accept: [away]
            - id: lenient
              match: { path: /lenient/** }
              mode: enforce
              accept: [lenient]
            """
        private static let signing = SigningForm.lines([.method, .target], headers: [])
        private static let field = "X-Firebase-AppCheck"

        /// A gateway, an issuer and an origin.
        private final class Stand {
            let scenario: Scenario
            let issuer: StandInServer
            let origin: RecordingOrigin
            private(set) var gateway: GatewayProcess
            private(set) var client: HTTPClient
            var key: SoftwareKey

            /// - limits: the section `limits`.
            init(limits: String = "{}") throws {
                scenario = try Scenario()
                issuer = try StandInServer(folder: scenario.folder.path)
                issuer.serveStatusList(
                    TokenIssuer.set(.init("one")),
                    fields: [("Cache-Control", "max-age=1")]
                )
                origin = try scenario.origin()
                let away = "keys: { url: \"https://localhost:1/keys\" }"
                let dead = """
                    kind: jwt, issuer: "\(TokenIssuer.name)", audience: shop, algorithms: [ES256]
                    """
                try scenario.configure(
                    origin: origin.address,
                    apps: "  - \(Scenario.app)",
                    rules: Proofs.rules.replacing("APP", with: Scenario.appID),
                    more: "limits: \(limits)\n"
                        + TokenIssuer.proofs(
                            issuer,
                            "app-check: { field: X-Firebase-AppCheck, KEYS }",
                            "cookie: { cookie: check, KEYS }",
                            "access: { field: Authorization, KEYS }",
                            "typed: { field: Authorization, typ: at+jwt, KEYS }",
                            "once: { field: X-Once, once: jti, KEYS }",
                            "away: { field: X-Away, \(dead), \(away) }",
                            "lenient: { field: X-Away, on_error: forward, \(dead), \(away) }"
                        )
                )
                key = try scenario.imported()[0]
                gateway = try scenario.serve()
                client = gateway.client()
                let isKnown = try eventually {
                    try client.send("GET", "/theirs/", [(field, TokenIssuer.token())]).status == 200
                }
                try #require(isKnown, "the issuer's keys did not come")
            }

            func end() {
                issuer.stop()
                scenario.end()
            }

            /// Starts the gateway again on the same store.
            func restart() throws {
                try expectEqual(gateway.stop(), 0)
                gateway = try scenario.serve()
                client = gateway.client()
            }

            /// Sends a request with these fields, signed or not.
            func send(
                _ target: String,
                _ fields: (name: String, value: String)...,
                signed: Bool = false,
                damage: AssertionDamage? = nil
            ) throws -> Answer {
                guard signed else { return try client.send("GET", target, fields) }
                let request = SoftwareKey.Request(method: "GET", target: target)
                let proof = key.proof(of: request, signing: signing, damage: damage)
                return try client.send(request, proof, more: fields)
            }

            /// What the origin saw of the last request.
            func saw(_ name: String) -> String? { origin.seen.last?.head.value(name) }
        }

        private func play(_ act: (Stand) throws -> Void) throws {
            let stand = try Stand()
            defer { stand.end() }
            try act(stand)
        }

        @Test func `each proof that a rule names is enough, and the origin gets its name`() throws {
            try play { (stand) throws in
                let token = TokenIssuer.token()
                try expectEqual(stand.send("/both/1", (Self.field, token)).status, 200)
                expectEqual(stand.saw("App-Attest-Proof"), "app-check")
                expectEqual(stand.saw("App-Attest-Verdict"), "pass")
                expectEqual(stand.saw("App-Attest-Key-Id"), nil)
                try expectEqual(stand.send("/both/2", signed: true).status, 200)
                expectEqual(stand.saw("App-Attest-Proof"), "assertion")
                try expectEqual(
                    stand.send("/both/3", (Self.field, token), signed: true).status,
                    200
                )
                expectEqual(stand.saw("App-Attest-Proof"), "assertion")
                expectEqual(stand.saw("App-Attest-Key-Id"), stand.key.keyID.base64)

                try expectEqual(stand.send("/page/", ("Cookie", "a=b; check=\(token)")).status, 200)
                expectEqual(stand.saw("App-Attest-Proof"), "cookie")
                try expectEqual(
                    stand.send("/bearer/", ("Authorization", "bearer \(token)")).status,
                    200
                )
                expectEqual(stand.saw("App-Attest-Proof"), "access")
                expectEqual(stand.saw("Authorization"), "bearer \(token)")
            }
        }

        @Test func `a token stands in for a signature that is no good, and proves no key`() throws {
            try play { (stand) throws in
                let answer = try stand.send(
                    "/both/1",
                    (Self.field, TokenIssuer.token()),
                    signed: true,
                    damage: .signature
                )
                expectEqual(answer.status, 200)
                expectEqual(stand.saw("App-Attest-Proof"), "app-check")
                expectEqual(stand.saw("App-Attest-Key-Id"), nil)
                let old = TokenIssuer.token(seconds: -60)
                let refused = try stand.send(
                    "/both/2",
                    (Self.field, old),
                    signed: true,
                    damage: .signature
                )
                expectEqual(refused.reason, "signature-mismatch")
                try expectEqual(stand.send("/both/3", (Self.field, old)).reason, "proof-expired")
                try expectEqual(stand.send("/both/4").reason, "assertion-missing")
            }
        }

        @Test func `a token is no proof where no rule names it`() throws {
            try play { (stand) throws in
                let token = TokenIssuer.token()
                let fields = [
                    (Self.field, token), ("Authorization", "Bearer \(token)"),
                    ("Cookie", "check=\(token)"), ("X-Once", token),
                ]
                for field in fields {
                    try expectEqual(stand.send("/ours/1", field).reason, "assertion-missing")
                }
                try expectEqual(
                    stand.send(
                        "/ours/2",
                        ("App-Attest-Key-Id", stand.key.keyID.base64),
                        ("App-Attest-Assertion", token)
                    ).reason,
                    "assertion-malformed"
                )
                // Another proof's place.
                for field in fields.dropFirst() {
                    try expectEqual(stand.send("/theirs/1", field).reason, "proof-missing")
                }
                try expectEqual(stand.send("/theirs/2", signed: true).reason, "proof-missing")
                let claim = ("App-Attest-Proof", "assertion")
                try expectEqual(stand.send("/theirs/3", claim, (Self.field, token)).status, 200)
                expectEqual(stand.saw("App-Attest-Proof"), "app-check")
            }
        }

        @Test func `a token that is there twice counts for nothing`() throws {
            try play { (stand) throws in
                let token = TokenIssuer.token()
                for answer in [
                    try stand.send("/theirs/1", (Self.field, token), (Self.field, token)),
                    try stand.send("/theirs/2", (Self.field, token), (Self.field, "x")),
                    try stand.send("/theirs/3", (Self.field, "\(token), \(token)")),
                    try stand.send("/theirs/4", (Self.field, "")),
                    try stand.send("/page/1", ("Cookie", "check=\(token); check=\(token)")),
                    try stand.send("/page/2", ("Cookie", "check=\(token)"), ("Cookie", "check=x")),
                    try stand.send("/page/3", ("Cookie", "check=\"\(token)\"")),
                    // Where some applications read another cookie of that name.
                    try stand.send("/page/5", ("Cookie", "check =x; check=\(token)")),
                    try stand.send("/page/6", ("Cookie", "check\t=x; check=\(token)")),
                    try stand.send("/page/7", ("Cookie", "check\u{A0}=x; check=\(token)")),
                    try stand.send("/page/8", ("Cookie", "check=\(token); a=b check=x")),
                    try stand.send("/page/9", ("Cookie", "check=\(token),check=x")),
                    try stand.send("/page/10", ("Cookie", "Check=x; check=\(token)")),
                    try stand.send("/page/11", ("Cookie", "%63heck=x; check=\(token)")),
                    try stand.send("/page/12", ("Cookie", "check[]=x; check=\(token)")),
                    try stand.send("/page/13", ("Cookie", "Check=\(token)")),
                    try stand.send("/page/14", ("Cookie", "check =\(token)")),
                    try stand.send("/page/15", ("Cookie", "check")),
                    try stand.send("/page/16", ("Cookie", "a=b"), ("Cookie", "check=\(token)")),
                    try stand.send("/theirs/5", (Self.field, String(repeating: "a", count: 9_000))),
                ] {
                    #expect(answer.reason == "proof-malformed" && answer.status == 400)
                }
                for cookie in ["xcheck=\(token)", "check2=\(token)", "x=check"] {
                    try expectEqual(
                        stand.send("/page/4", ("Cookie", cookie)).reason,
                        "proof-missing"
                    )
                }
                for value in ["Basic \(token)", "Bearer\(token)", token, "Bearer"] {
                    let answer = try stand.send("/bearer/", ("Authorization", value))
                    expectEqual(answer.reason, "proof-missing", "\(value.prefix(8))")
                }
            }
        }

        /// 8,000 tokens of another audience were verified, and none was throttled.
        @Test func `signatures that were verified in vain count against the address`() throws {
            let stand = try Stand(limits: "{ address_failures: 4/m }")
            defer { stand.end() }
            let vain = [
                (TokenIssuer.token(audience: "elsewhere"), 403, "proof-refused"),
                (TokenIssuer.token(seconds: -600), 401, "proof-expired"),
                (TokenIssuer.token(more: #","aud":"shop""#), 403, "proof-refused"),
                (TokenIssuer.token(by: .init("two")), 401, "proof-invalid"),
            ]
            for (token, status, reason) in vain {
                // What costs no signature counts for nothing.
                try expectEqual(stand.send("/theirs/1", (Self.field, "x")).status, 400)
                let answer = try stand.send("/theirs/2", (Self.field, token))
                #expect(answer.status == status && answer.reason == reason, "\(answer.text)")
            }
            let throttled = try stand.send("/theirs/3", (Self.field, TokenIssuer.token()))
            #expect(throttled.status == 429 && throttled.reason == "proof-throttled")
        }

        @Test func `a client with one expired token is not throttled`() throws {
            let stand = try Stand(limits: "{ address_failures: 2/m }")
            defer { stand.end() }
            let old = TokenIssuer.token(seconds: -600)
            try expectEqual(stand.send("/theirs/1", (Self.field, old)).reason, "proof-expired")
            for number in 0..<20 {
                let token = TokenIssuer.token(more: ",\"n\":\(number)")
                try expectEqual(stand.send("/theirs/2", (Self.field, token)).status, 200)
            }
        }

        /// RFC 8725 §3.11
        @Test func `a token of another kind is refused where the proof names a kind`() throws {
            try play { (stand) throws in
                for (type, status) in [("at+jwt", 200), ("application/AT+JWT", 200), ("JWT", 403)] {
                    let bearer = "Bearer \(TokenIssuer.token(type: type))"
                    let answer = try stand.send("/typed/1", ("Authorization", bearer))
                    expectEqual(answer.status, status, "\(type)")
                    expectEqual(answer.reason, status == 200 ? "" : "proof-refused", "\(type)")
                }
                let plain = try stand.send(
                    "/typed/2",
                    ("Authorization", "Bearer \(TokenIssuer.token())")
                )
                expectEqual(plain.reason, "proof-refused")
            }
        }

        @Test func `a refusal tells the client to get another token`() throws {
            try play { (stand) throws in
                let answer = try stand.send("/theirs/1")
                #expect(answer.status == 401 && answer.reason == "proof-missing")
                expectEqual(answer.member("next"), "get-token")
                let challenge = answer.value("WWW-Authenticate") ?? ""
                #expect(challenge.contains(#"tokens="app-check""#), "\(challenge)")
                let other = TokenIssuer.token(audience: "elsewhere")
                let refused = try stand.send("/theirs/2", (Self.field, other))
                #expect(refused.status == 403 && refused.reason == "proof-refused")
                let forged = TokenIssuer.token(by: .init("two"))
                let unknown = try stand.send("/theirs/3", (Self.field, forged))
                #expect(unknown.status == 401 && unknown.reason == "proof-invalid")
            }
        }

        @Test func `a rule may ask for a token beside a signature`() throws {
            try play { (stand) throws in
                let token = TokenIssuer.token()
                try expectEqual(stand.send("/beside/1", signed: true).reason, "proof-missing")
                try expectEqual(
                    stand.send("/beside/2", (Self.field, token)).reason,
                    "assertion-missing"
                )
                let answer = try stand.send("/beside/3", (Self.field, token), signed: true)
                expectEqual(answer.status, 200)
                expectEqual(stand.saw("App-Attest-Proof"), "assertion, app-check")
                expectEqual(stand.saw("App-Attest-Key-Id"), stand.key.keyID.base64)
            }
        }

        @Test func `a token's field that is signed goes with its own request alone`() throws {
            try play { (stand) throws in
                let mine = TokenIssuer.token(more: #","jti":"mine""#)
                let request = SoftwareKey.Request(
                    method: "GET",
                    target: "/bound/1",
                    fields: [Self.field.lowercased(): mine]
                )
                let form = SigningForm.lines([.method, .target], headers: ["x-firebase-appcheck"])
                let proof = stand.key.proof(of: request, signing: form)
                let others = TokenIssuer.token(more: #","jti":"others""#)
                let exchanged = proof.fields + [(Self.field, others)]
                try expectEqual(
                    stand.client.send("GET", "/bound/1", exchanged).reason,
                    "signature-mismatch"
                )
                try expectEqual(stand.client.send(request, proof).status, 200)
                expectEqual(stand.saw("App-Attest-Proof"), "assertion, app-check")
                expectEqual(stand.saw(Self.field), mine)
            }
        }

        @Test func `a device that can't attest is admitted with the token that stands in`() throws {
            try play { (stand) throws in
                let (token, unable) = (TokenIssuer.token(), ("App-Attest-Unsupported", "1"))
                try expectEqual(stand.send("/old/1", unable).reason, "proof-missing")
                try expectEqual(
                    stand.send("/old/2", (Self.field, token)).reason,
                    "assertion-missing"
                )
                try expectEqual(stand.send("/old/3", unable, (Self.field, token)).status, 200)
                expectEqual(stand.saw("App-Attest-Proof"), "app-check")
            }
        }

        @Test func `keys are rotated, and outlast a restart without the issuer`() throws {
            try play { (stand) throws in
                let (old, new) = (TokenIssuer.Key("one"), TokenIssuer.Key("two"))
                let fresh = TokenIssuer.token(by: new)
                try expectEqual(
                    stand.send("/theirs/1", (Self.field, fresh)).reason,
                    "proof-invalid"
                )
                stand.issuer.serveStatusList(TokenIssuer.set(old, new))
                #expect(
                    try eventually {
                        try stand.send("/theirs/2", (Self.field, fresh)).status == 200
                    }
                )
                try expectEqual(
                    stand.send("/theirs/3", (Self.field, TokenIssuer.token())).status,
                    200
                )
                stand.issuer.serveStatusList(TokenIssuer.set(new))
                #expect(
                    try eventually {
                        try stand.send("/theirs/4", (Self.field, TokenIssuer.token())).status == 401
                    }
                )
                // What can't be read replaces nothing.
                stand.issuer.serveStatusList("no keys")
                #expect(stand.issuer.waitForList { $0.suffix(2).allSatisfy { $0.status == 200 } })
                stand.issuer.stop()
                try stand.restart()
                try expectEqual(stand.send("/theirs/5", (Self.field, fresh)).status, 200)
                let metrics = try stand.gateway.adminClient().send("GET", "/metrics").text
                #expect(metrics.contains(#"portcullis_proof_keys_age_seconds{proof="app-check"}"#))
            }
        }

        @Test func `a reload that is refused leaves nothing of its keys behind`() throws {
            try play { (stand) throws in
                let file = stand.scenario.path("portcullis.yaml")
                let text = try String(contentsOfFile: file, encoding: .utf8)
                let moved = text.replacing("/attestation/status", with: "/attestation/moved")
                // A log that passes all checks, and can't be opened: nothing reads from it.
                let log = stand.scenario.path("unread")
                mkfifo(log, 0o600)
                try stand.scenario.write("portcullis.yaml", moved + "log: { access: \(log) }\n")
                stand.gateway.child.signal(SIGHUP)
                _ = try stand.gateway.child.wait(for: "refused reload") { _, complained in
                    complained.contains("reload refused") ? true : nil
                }
                let metrics = try stand.gateway.adminClient().send("GET", "/metrics").text
                let sample = #"portcullis_proof_keys{proof="app-check"} "#
                expectEqual(metrics.split(separator: "\n").count { $0.hasPrefix(sample) }, 1)
            }
        }

        @Test func `a set of keys is asked for with its tag`() throws {
            try play { (stand) throws in
                let isKnown = stand.issuer.waitForList { $0.contains { $0.status == 304 } }
                #expect(isKnown)
            }
        }

        @Test func `a token that is good once is good once, also after a restart`() throws {
            try play { (stand) throws in
                let token = TokenIssuer.token(more: #","jti":"a""#)
                let gateway = stand.gateway
                let answers = try TokenIssuer.atOnce(8) { _ in
                    try gateway.client().send("GET", "/once/1", [("X-Once", token)])
                }
                expectEqual(answers.filter { $0.status == 200 }.count, 1)
                expectEqual(answers.filter { $0.reason == "proof-spent" }.count, 7)
                try stand.restart()
                try expectEqual(stand.send("/once/2", ("X-Once", token)).reason, "proof-spent")
                let other = TokenIssuer.token(more: #","jti":"b""#)
                try expectEqual(stand.send("/once/3", ("X-Once", other)).status, 200)
                let nameless = try stand.send("/once/4", ("X-Once", TokenIssuer.token()))
                expectEqual(nameless.reason, "proof-refused")
            }
        }

        @Test func `without the issuer's keys on_error decides`() throws {
            try play { (stand) throws in
                let token = TokenIssuer.token()
                let refused = try stand.send("/away/1", ("X-Away", token))
                #expect(refused.status == 503 && refused.reason == "proof-unavailable")
                try expectEqual(stand.send("/lenient/1", ("X-Away", token)).status, 200)
                expectEqual(stand.saw("App-Attest-Verdict"), "error")
                expectEqual(stand.saw("App-Attest-Reason"), "proof-unavailable")
                expectEqual(stand.saw("App-Attest-Proof"), nil)
                try expectEqual(stand.send("/lenient/2").reason, "proof-missing")
            }
        }
    }

    /// A token that is good once, at gateways that share a database.
    @Suite(.enabled(if: Scenario.isPossible)) struct FleetProofs {
        private static let rules = """
            - id: once
              match: { path: /once/** }
              mode: enforce
              accept: [assertion, once]
            """

        private static let people = """
            - id: people
              match: { path: /people/** }
              mode: enforce
              accept: [assertion, people]
            """

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a test for people that one gateway took is good at no other`() throws {
            let folder = try Scenario()
            defer { folder.end() }
            let tests = try StandInServer(folder: folder.folder.path)
            defer { tests.stop() }
            try PeopleStand.writeSecret(folder, StandInServer.testSecret)
            let fleet = try Fleet(
                3,
                rules: Self.people,
                more: """
                    proofs:
                      people: { kind: siteverify, service: turnstile, \
                    url: "\(tests.testURL(.turnstile))", secret_file: \(folder.path("secret")), \
                    field: X-Test-Token, hostname: localhost, action: order, \
                    roots: \(tests.rootFile) }
                    """
            )
            defer { fleet.end() }
            let gateways = (0..<3).compactMap { fleet.gateway($0) }
            func send(_ token: String) throws -> [Answer] {
                try TokenIssuer.atOnce(9) { number in
                    let fields = [(name: "X-Test-Token", value: token)]
                    return try gateways[number % 3].client().send("GET", "/people/", fields)
                }
            }
            for round in 0..<5 {
                let token = "0.round\(round)"
                tests.addTest(token, StandInTest())
                try expectEqual(send(token).filter { $0.status == 200 }.count, 1)
                // A service that calls it good again finds it spent at all gateways.
                tests.addTest(token, StandInTest())
                let answers = try send(token)
                #expect(answers.allSatisfy { $0.status == 401 && $0.reason == "proof-spent" })
            }
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a token that three gateways get at once is good at one of them`() throws {
            let folder = try Scenario()
            defer { folder.end() }
            let issuer = try StandInServer(folder: folder.folder.path)
            defer { issuer.stop() }
            issuer.serveStatusList(TokenIssuer.set(.init("one")))
            let fleet = try Fleet(
                3,
                rules: Self.rules,
                more: TokenIssuer.proofs(issuer, "once: { field: X-Once, once: jti, KEYS }")
            )
            defer { fleet.end() }
            let gateways = (0..<3).compactMap { fleet.gateway($0) }
            for (number, gateway) in gateways.enumerated() {
                let isReady = try eventually {
                    let probe = TokenIssuer.token(more: ",\"jti\":\"p\(number)-\(UUID())\"")
                    return try gateway.client().send("GET", "/once/", [("X-Once", probe)]).status
                        == 200
                }
                try #require(isReady)
            }
            for round in 0..<10 {
                let token = TokenIssuer.token(more: ",\"jti\":\"r\(round)\"")
                let answers = try TokenIssuer.atOnce(9) { number in
                    try gateways[number % 3].client().send("GET", "/once/", [("X-Once", token)])
                }
                expectEqual(answers.filter { $0.status == 200 }.count, 1)
                expectEqual(answers.filter { $0.reason == "proof-spent" }.count, 8)
            }
        }
    }
}
