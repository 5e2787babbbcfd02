import AppleStandIn
import Expectations
import Foundation
import LoopbackKit
import Signatures
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Android phones with a token of Play Integrity.
    @Suite(.enabled(if: Scenario.isPossible)) struct PlayIntegrity {
        @Test func `Google is asked with one access token, and the origin gets what it says`()
            throws
        {
            let stand = try IntegrityStand()
            defer { stand.end() }
            let phone = try stand.phone()
            for _ in 0..<3 {
                let answer = try stand.send("marked", phone, stand.token("marked"))
                expectEqual(answer.status, 200, "\(answer.text)")
                expectEqual(
                    stand.told,
                    """
                    met;device="basic device";recognized;licensed;activity=1;\
                    play-protect=no-issues
                    """
                )
            }
            let head = try #require(stand.origin.seen.last).head
            expectEqual(head.value("App-Attest-Proof"), "assertion, play")
            expectEqual(head.value(IntegrityStand.field), nil)
            let calls = stand.google.integrityCalls
            expectEqual(calls.map(\.isGrant), [true, false, false, false])
            #expect(calls.allSatisfy { $0.status == 200 })
            expectEqual(calls[1].path, "/v1/com.example.shop:decodeIntegrityToken")
            let good = #"proof_verdicts_total{proof="play",verdict="good"} 3"#
            #expect(try stand.metrics().contains(good))
        }

        @Test func `an iPhone under the same rule needs none`() throws {
            let stand = try IntegrityStand()
            defer { stand.end() }
            let phone = try stand.phone(.http1)
            for rule in ["marked", "strict", "local"] {
                try expectEqual(stand.send(rule, phone, nil).status, 200)
                expectEqual(stand.told, nil)
            }
            #expect(stand.google.integrityCalls.isEmpty)
        }

        @Test func `a rule that marks forwards every phone, and says what Google says`() throws {
            let stand = try IntegrityStand()
            defer { stand.end() }
            let phone = try stand.phone()
            let poor = try stand.token("marked") { verdict in
                verdict.device = ["MEETS_BASIC_INTEGRITY"]
                verdict.recognition = "UNEVALUATED"
                verdict.licensing = "UNLICENSED"
                (verdict.activity, verdict.playProtect) = ("LEVEL_4", "HIGH_RISK")
                verdict.isTest = true
            }
            try expectEqual(stand.send("marked", phone, poor).status, 200)
            expectEqual(
                stand.told,
                """
                unmet;of="test device recognized licensed activity play-protect";\
                device="basic";activity=4;play-protect=high-risk;test
                """
            )
            expectEqual(stand.origin.seen.last?.head.value("App-Attest-Proof"), "assertion")
            try expectEqual(stand.send("marked", phone, nil).status, 200)
            expectEqual(stand.told, "missing")
            try expectEqual(stand.send("marked", phone, "a b").status, 200)
            expectEqual(stand.told, "malformed")
            try expectEqual(stand.send("marked", phone, "unknown").status, 200)
            expectEqual(stand.told, "invalid")
            stand.google.playIntegrity(.status(500))
            try expectEqual(stand.send("marked", phone, stand.token("marked")).status, 200)
            expectEqual(stand.told, "unavailable")
            #expect(try stand.metrics().contains("portcullis_integrity_marks_total 5"))
            let report = try stand.report()
            #expect(report.contains("Play Integrity: met 0, unmet 5"), "\(report)")
        }

        /// What is wrong with each token, and the answer to it.
        private static let faults:
            [(String, Int, String, @Sendable (inout SoftwarePlayVerdict) -> Void)] =
                [
                    ("another request", 403, "proof-refused", { $0.hash = "b3RoZXI" }),
                    ("no hash", 403, "proof-refused", { $0.hash = "" }),
                    ("another's word", 403, "proof-refused", { $0.package = "com.example.other" }),
                    ("another app", 401, "proof-invalid", { $0.appPackage = "com.example.other" }),
                    ("another signer", 403, "proof-refused", { $0.signers = ["AAAA"] }),
                    ("too old", 401, "proof-expired", { $0.milliseconds -= 400_000 }),
                    ("too new", 401, "proof-expired", { $0.milliseconds += 400_000 }),
                    ("no device", 403, "proof-refused", { $0.device = [] }),
                    ("basic", 403, "proof-refused", { $0.device = ["MEETS_BASIC_INTEGRITY"] }),
                    ("not licensed", 403, "proof-refused", { $0.licensing = "UNEVALUATED" }),
                    ("a tester's", 403, "proof-refused", { $0.isTest = true }),
                ]

        @Test func `a rule that refuses takes a good phone's token for this request alone`() throws
        {
            let stand = try IntegrityStand()
            defer { stand.end() }
            let phone = try stand.phone()
            for (what, status, reason, edit) in Self.faults {
                let answer = try stand.send("strict", phone, stand.token("strict", edit))
                #expect(answer.status == status && answer.reason == reason, "\(what)")
            }
            try expectEqual(stand.send("strict", phone, nil).reason, "proof-missing")
            #expect(stand.origin.seen.isEmpty)
            let classic = try stand.token("strict") { $0.isClassic = true }
            try expectEqual(stand.send("strict", phone, classic).status, 200)
        }

        @Test func `a token is good once, at Google and here`() throws {
            let stand = try IntegrityStand()
            defer { stand.end() }
            let phone = try stand.phone()
            for rule in ["strict", "local"] {
                let token = try stand.token(rule)
                try expectEqual(stand.send(rule, phone, token).status, 200)
                let calls = stand.google.integrityCalls.count
                let again = try stand.send(rule, phone, token)
                #expect(again.status == 401 && again.reason == "proof-spent")
                expectEqual(stand.google.integrityCalls.count, calls)
            }
            // Another spelling of a token that Google reads alike.
            let verdict = IntegrityStand.verdict("strict")
            for (spelling, status) in [("one", 200), ("two", 401)] {
                stand.google.addIntegrity(spelling, verdict)
                try expectEqual(stand.send("strict", phone, spelling).status, status)
            }
        }

        @Test func `a classic token is read here, strictly`() throws {
            let stand = try IntegrityStand()
            defer { stand.end() }
            let phone = try stand.phone()
            let good = try stand.token("local")
            try expectEqual(stand.send("local", phone, good).status, 200)
            let other = SoftwarePlayConsole()
            let payload = IntegrityStand.verdict("local").json
            let faults = try [
                (other.token(payload), "proof-invalid"),
                (stand.console.token("{}"), "proof-refused"),
                (stand.console.token("[]"), "proof-invalid"),
                (stand.console.token(payload, inner: #"{"alg":"none"}"#), "proof-invalid"),
                (
                    stand.console.token(payload, header: #"{"alg":"dir","enc":"A256GCM"}"#),
                    "proof-invalid"
                ),
                (String(good.dropLast(4)) + "AAAA", "proof-invalid"),
                (good.replacing(".", with: ""), "proof-malformed"),
            ]
            for (token, reason) in faults {
                try expectEqual(stand.send("local", phone, token).reason, reason)
            }
            #expect(stand.google.integrityCalls.isEmpty)
        }

        private static let silent: [StandInPlay] = [
            .status(500), .status(429), .status(404), .status(200, body: "<html>"), .garbage, .cut,
            .hang, .long(bytes: 1 << 20), .redirect(to: "https://localhost/"),
            .status(200, body: #"{"tokenPayloadExternal": {}, "tokenPayloadExternal": {}}"#),
        ]

        @Test func `while Google fails, on_error decides, and nothing is repeated`() throws {
            let stand = try IntegrityStand(", timeout: 1s")
            defer { stand.end() }
            let phone = try stand.phone()
            for play in Self.silent {
                for (rule, status) in [("strict", 503), ("lenient", 200)] {
                    // The breaker opens after five failures; a good call between closes it again.
                    #expect(
                        try eventually {
                            try stand.send(rule, phone, stand.token(rule)).status == 200
                                && stand.told?.hasPrefix("met") == true
                        }
                    )
                    let before = stand.google.integrityCalls.count
                    stand.google.playNextIntegrity(play)
                    let answer = try stand.send(rule, phone, stand.token(rule))
                    expectEqual(answer.status, status, "\(play) \(answer.text)")
                    expectEqual(stand.google.integrityCalls.count, before + 1, "\(play)")
                }
            }
        }

        /// Otherwise a client could choose a token for which the rule forwards.
        @Test func `what a token can cause refuses it also where on_error forwards`() throws {
            let stand = try IntegrityStand()
            defer { stand.end() }
            let phone = try stand.phone()
            try expectEqual(stand.send("lenient", phone, stand.token("lenient")).status, 200)
            for status in [400, 403, 413, 422] {
                stand.google.playNextIntegrity(.status(status))
                let answer = try stand.send("lenient", phone, stand.token("lenient"))
                expectEqual(answer.reason, "proof-invalid", "\(status)")
            }
            let long = String(repeating: "n", count: 500)
            let bound = try stand.token("lenient") { $0.hash = long }
            try expectEqual(stand.send("lenient", phone, bound).reason, "proof-refused")
            expectEqual(stand.origin.seen.count, 1)
        }

        @Test func `an access token is renewed before its end, and when it is refused`() throws {
            let stand = try IntegrityStand()
            defer { stand.end() }
            let phone = try stand.phone()
            try expectEqual(stand.send("strict", phone, stand.token("strict")).status, 200)
            stand.google.refuseAccessTokens()
            try expectEqual(stand.send("strict", phone, stand.token("strict")).status, 200)
            let statuses = stand.google.integrityCalls.map { ($0.isGrant, $0.status) }
            expectEqual(statuses.map(\.0), [true, false, false, true, false])
            expectEqual(statuses.map(\.1), [200, 200, 401, 200, 200])
            // An account that is not known any more.
            stand.google.refuseAccessTokens()
            stand.google.add(try StandInAccount(tokenURL: stand.google.grantURL))
            let answer = try stand.send("strict", phone, stand.token("strict"))
            expectEqual(answer.reason, "proof-unavailable")
            let refused = #"proof_verdicts_total{proof="play",verdict="account-refused"} 1"#
            #expect(try stand.metrics().contains(refused))
        }

        @Test func `at an enrolment the token is bound to what the key was made for`() throws {
            let stand = try IntegrityStand(
                enrolment: "{ proof: play, device: [device], action: refuse }"
            )
            defer { stand.end() }
            let key = IntegrityStand.device(.android).makeKey()
            let challenge = try stand.server.challenges("enrolment", stand.client)[0]
            func enrol(_ token: String?) throws -> Answer {
                let fields = token.map { [(name: IntegrityStand.field, value: $0)] } ?? []
                let document = key.enrolment(challenge: challenge, at: Scenario.now)
                return try stand.client.send(
                    "POST",
                    "/.well-known/app-attest/keys",
                    fields,
                    content: Array(document.utf8)
                )
            }
            func token(_ edit: (inout SoftwarePlayVerdict) -> Void = { _ in }) throws -> String {
                let hash = SHA256.digest(of: Array(challenge.utf8)).array
                return try stand.token("") { verdict in
                    verdict = SoftwarePlayVerdict(
                        clientDataHash: hash,
                        at: IntegrityStand.milliseconds,
                        signer: SoftwarePhone.signer
                    )
                    edit(&verdict)
                }
            }
            // The challenge stays good, so that the app need not make another key.
            try expectEqual(enrol(nil).reason, "proof-missing")
            try expectEqual(enrol(token { $0.hash = "b3RoZXI" }).reason, "proof-refused")
            try expectEqual(enrol(token { $0.device = [] }).reason, "proof-refused")
            stand.google.playNextIntegrity(.status(500))
            try expectEqual(enrol(token()).reason, "proof-unavailable")
            try expectEqual(enrol(token()).status, 201)
            // An iPhone enrols as ever.
            let other = IntegrityStand.device(.http1).makeKey()
            try expectEqual(stand.server.enrol(other, stand.client).status, 201)
        }

        @Test func `an app that marks enrols every phone`() throws {
            let stand = try IntegrityStand(enrolment: "{ proof: play, device: [strong] }")
            defer { stand.end() }
            _ = try stand.phone()
            #expect(try stand.metrics().contains("portcullis_integrity_marks_total 1"))
            #expect(stand.google.integrityCalls.isEmpty)
        }

        @Test func `the doctor asks Google, and finds an account that is not accepted`() throws {
            let stand = try IntegrityStand()
            defer { stand.end() }
            let doctor = ["doctor", stand.scenario.path("portcullis.yaml")]
            let well = try stand.scenario.portcullis(doctor).printed
            #expect(well.contains("play: Play Integrity answers, and accepts the service account"))
            stand.google.linkIntegrity(false)
            let denied = try stand.scenario.portcullis(doctor).printed
            #expect(denied.contains("does not read tokens of com.example.shop"), "\(denied)")
            stand.google.add(try StandInAccount(tokenURL: stand.google.grantURL))
            let ill = try stand.scenario.portcullis(doctor)
            expectEqual(ill.status, 1)
            #expect(ill.printed.contains("play: Play Integrity can't be asked: account-refused"))
        }
    }
}
