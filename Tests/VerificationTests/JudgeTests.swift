import AppAttest
import Cryptography
import Expectations
import KeyStore
import RequestBinding
import Rules
import SoftwareAuthenticator
import Testing
import Tokens
import Verification

/// One request that is refused, and why.
struct RefusedCase: Sendable, CustomTestStringConvertible {
    let refusal: Refusal
    let note: String
    let act: @Sendable (inout Trial) throws -> Verdict

    init(
        _ refusal: Refusal,
        _ note: String,
        _ act: @escaping @Sendable (inout Trial) throws -> Verdict
    ) {
        self.refusal = refusal
        self.note = note
        self.act = act
    }

    var testDescription: String { "\(refusal.rawValue): \(note)" }

    /// The usual case: an enrolled key signs a request, and one thing is not as it should be.
    static func sent(
        _ refusal: Refusal,
        _ note: String,
        _ damage: AssertionDamage? = nil,
        _ edit: @escaping @Sendable (inout Wire) -> Void = { _ in }
    ) -> RefusedCase {
        RefusedCase(refusal, note) { trial in
            var key = trial.enrolledKey()
            return try trial.send(try trial.request(), by: &key, damage: damage, onTheWay: edit)
        }
    }

    static let presence: [RefusedCase] = [
        .sent(.assertionMissing, "no assertion") { $0.remove("App-Attest-Assertion") },
        .sent(.assertionMissing, "no key id") { $0.remove("App-Attest-Key-Id") },
        .sent(.unsupported, "the client can't attest") {
            $0.remove("App-Attest-Assertion")
            $0.set("App-Attest-Unsupported", "1")
        },
        .sent(.challengeMissing, "no challenge") { $0.remove("App-Attest-Challenge") },
        .sent(.assertionMalformed, "not base64") { $0.set("App-Attest-Assertion", "%%%") },
        .sent(.assertionMalformed, "empty") { $0.set("App-Attest-Assertion", "") },
        .sent(.assertionMalformed, "too long") {
            $0.set("App-Attest-Assertion", String(repeating: "A", count: 2_000))
        },
        .sent(.assertionMalformed, "a key id of 31 bytes") {
            $0.set("App-Attest-Key-Id", String(repeating: "A", count: 42))
        },
        .sent(.assertionMalformed, "two assertions") {
            $0.fields.append(("app-attest-assertion", $0.value("App-Attest-Assertion") ?? ""))
        },
        .sent(.assertionMalformed, "two key ids") {
            $0.fields.append(("APP-ATTEST-KEY-ID", $0.value("App-Attest-Key-Id") ?? ""))
        },
        .sent(.assertionMalformed, "two challenges") {
            $0.fields.append(("App-Attest-Challenge", "AQEA"))
        },
    ]

    static let syntax: [RefusedCase] = AssertionDamage.allCases
        .filter { $0.refusal == .malformed }
        .map { .sent(.assertionMalformed, $0.rawValue, $0) }

    static let signature: [RefusedCase] =
        AssertionDamage.allCases.filter { $0.refusal == .signatureMismatch }
        .map { .sent(.signatureMismatch, $0.rawValue, $0) } + [
            .sent(.signatureMismatch, "another method") { $0.method = "PUT" },
            .sent(.signatureMismatch, "another path") { $0.target = "/v1/orders2?dry=1" },
            .sent(.signatureMismatch, "another query") { $0.target = "/v1/orders?dry=0" },
            .sent(.signatureMismatch, "another case in the path") {
                $0.target = "/v1/Orders?dry=1"
            },
            .sent(.signatureMismatch, "another digest") {
                $0.set(
                    "Content-Digest",
                    "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
                )
            },
            RefusedCase(.signatureMismatch, "another challenge, fresh all the same") { trial in
                var key = trial.enrolledKey()
                let other = try trial.challenge()
                return try trial.send(try trial.request(), by: &key) {
                    $0.set("App-Attest-Challenge", other)
                }
            },
            RefusedCase(.signatureMismatch, "the key id of another enrolled key") { trial in
                var key = trial.enrolledKey()
                let other = trial.enrolledKey()
                return try trial.send(try trial.request(), by: &key) {
                    $0.set("App-Attest-Key-Id", other.keyID.base64)
                }
            },
        ]

    static let key: [RefusedCase] = [
        RefusedCase(.keyUnknown, "never enrolled") { trial in
            var key = Trial.device().makeKey()
            return try trial.send(try trial.request(), by: &key)
        },
        RefusedCase(.keyRevoked, "revoked by another process") { trial in
            var key = trial.enrolledKey()
            _ = trial.journal.revoke(key.keyID, at: 1)
            return try trial.send(try trial.request(), by: &key)
        },
        RefusedCase(.appMismatch, "of an app that is not configured") { trial in
            var key = trial.enrolledKey(appID: Trial.otherAppID)
            return try trial.send(try trial.request(), by: &key)
        },
        RefusedCase(.appMismatch, "of an app that the rule does not name") { trial in
            var key = trial.enrolledKey()
            let rule = Trial.rule { $0.apps = .named([Trial.otherAppID]) }
            return try trial.send(try trial.request(), by: &key, rule)
        },
        .sent(.appMismatch, "made in another app", .otherApp),
        RefusedCase(.environmentMismatch, "a development key in production") { trial in
            var key = trial.enrolledKey(as: .development)
            return try trial.send(try trial.request(), by: &key)
        },
        RefusedCase(.environmentMismatch, "a test key where nothing is for tests") { trial in
            var key = trial.enrolledKey(as: .test)
            return try trial.send(try trial.request(), by: &key)
        },
    ]

    static let state: [RefusedCase] = [
        RefusedCase(.counterReplayed, "equal to the stored one") { trial in
            var key = trial.enrolledKey()
            _ = try trial.send(try trial.request(), by: &key)
            return try trial.send(try trial.request(), by: &key, damage: .counterRepeated)
        },
        RefusedCase(.counterReplayed, "below the stored one, where the rule is strict") { trial in
            var key = trial.enrolledKey(counters: CounterState(highest: SignCounter(rawValue: 9)))
            let rule = Trial.rule { $0.counter = .strict }
            return try trial.send(try trial.request(), by: &key, rule)
        },
        RefusedCase(.counterReplayed, "below the window") { trial in
            var key = trial.enrolledKey(counters: CounterState(highest: SignCounter(rawValue: 66)))
            return try trial.send(try trial.request(), by: &key)
        },
        RefusedCase(.challengeUnknown, "made up") { trial in
            var key = trial.enrolledKey()
            var request = try trial.request()
            request.challenge = "bm90IGlzc3VlZCBoZXJl"
            return try trial.send(request, by: &key)
        },
        RefusedCase(.challengeUnknown, "issued for enrolment") { trial in
            var key = trial.enrolledKey()
            var request = try trial.request()
            request.challenge = try trial.challenge(.enrolment)
            return try trial.send(request, by: &key)
        },
        RefusedCase(.challengeUnknown, "of another start of the gateway") { trial in
            var key = trial.enrolledKey()
            var request = try trial.request()
            let before = ChallengeIssuer(
                secrets: .init(own: Array(repeating: 7, count: 32)),
                epoch: 2
            )
            let text = before.issue(.assertion, now: trial.now.seconds)
            request.challenge = String(decoding: text, as: UTF8.self)
            return try trial.send(request, by: &key)
        },
        RefusedCase(.challengeExpired, "a second too late") { trial in
            var key = trial.enrolledKey()
            let request = try trial.request()
            trial.now = trial.now.advanced(bySeconds: 300)
            return try trial.send(request, by: &key)
        },
        RefusedCase(.challengeSpent, "signed twice") { trial in
            var key = trial.enrolledKey()
            let request = try trial.request()
            _ = try trial.send(request, by: &key)
            return try trial.send(request, by: &key)
        },
    ]

    static let build: [RefusedCase] = [
        RefusedCase(.categoryRefused, "a development build") { _ in
            try verdict(of: .iOS27(category: .development, bundleVersion: "100"))
        },
        RefusedCase(.categoryRefused, "no category") { _ in try verdict(of: .beforeTwentySeven) },
        RefusedCase(.versionRefused, "another build number") { _ in
            try verdict(of: .iOS27(category: .appStore, bundleVersion: "99"))
        },
    ]

    private static func verdict(of shape: DeviceShape) throws -> Verdict {
        var trial = try Trial([Trial.policy { $0.builds = .appStore100 }])
        var key = trial.enrolledKey(Trial.device(shape: shape))
        return try trial.send(try trial.request(), by: &key)
    }

    static let content: [RefusedCase] = [
        .sent(.digestMissing, "content without a digest") { $0.remove("Content-Digest") },
        .sent(.digestMissing, "another algorithm only") {
            $0.set("Content-Digest", "sha-512=:AAAA:")
        },
        .sent(.digestMissing, "no digest's grammar") { $0.set("Content-Digest", "sha-256=AAAA") },
        .sent(.digestMissing, "31 bytes") {
            $0.set("Content-Digest", "sha-256=:" + String(repeating: "A", count: 42) + ":")
        },
        .sent(.digestMissing, "two that differ") {
            $0.fields.append(
                ("Content-Digest", "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:")
            )
        },
        .sent(.digestMismatch, "a digest of something, and no content") { $0.content = [] },
        RefusedCase(.clientDataAmbiguous, "a signed method that reads as none") { trial in
            var key = trial.enrolledKey()
            return try trial.send(try trial.request("-"), by: &key)
        },
        .sent(.contentTooLarge, "announced beyond the limit") {
            $0.framing = .stated((1 << 20) + 1)
        },
    ]

    static let all = presence + syntax + signature + key + state + build + content
}

extension BuildPolicy {
    static let appStore100 = BuildPolicy(
        categories: [.appStore],
        acceptsAbsentCategory: false,
        bundleVersions: ["100"],
        acceptsAbsentBundleVersion: false
    )
}

@Suite struct JudgeTests {
    @Test(arguments: RefusedCase.all)
    func `a request is refused for what is wrong with it`(refused: RefusedCase) throws {
        var trial = try Trial()
        let verdict = try refused.act(&trial)
        expectEqual(verdict.outcome, .refuse(refused.refusal))
        expectEqual(verdict.pending, .nothing)
    }

    @Test func `every reason that a request can have is tried`() {
        // By the tests of enrolments, of sessions, tokens, rates and disputed requests; by the
        // transcripts of Flow, which ask Apple and hold content; by the scenarios of addresses.
        let elsewhere: Set<RefusalRow.Subject> = [
            .enrolment, .device, .session, .token, .rate, .dispute, .preflight, .room, .address,
        ]
        let tried = Set(RefusedCase.all.map(\.refusal))
        let untried = Refusal.allCases.filter {
            !tried.contains($0) && !elsewhere.contains($0.row.subject)
        }
        // Where the content ends, where fields are signed, where the store fails or is full, by the
        // key's age, by tokens that are absent, or by the rule alone.
        expectEqual(
            Set(untried),
            [
                .contentUnseen, .signedFieldRepeated, .storeUnavailable, .challengesExhausted,
                .keyExpired, .proofMissing, .noRule,
            ]
        )
    }

    @Test(arguments: RefusedCase.all)
    func `a refused request uses no counter and no challenge`(refused: RefusedCase) throws {
        var trial = try Trial()
        _ = try refused.act(&trial)
        var key = trial.enrolledKey()
        let request = try trial.request()
        let before = try trial.counters(key)
        var spoilt = key
        _ = try trial.send(request, by: &spoilt, damage: .signature)
        try expectEqual(trial.counters(key), before)
        try expectEqual(trial.send(request, by: &key).outcome, .pass)
    }

    @Test func `a pass names the key, the app and the environment`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let verdict = try trial.send(try trial.request(), by: &key)
        expectEqual(verdict.outcome, .pass)
        expectEqual(verdict.keyID, key.keyID)
        expectEqual(verdict.appID, Trial.appID)
        expectEqual(verdict.environment, .production)
        #expect(!verdict.isTest)
        try expectEqual(trial.counters(key).highest, SignCounter(rawValue: 1))
    }

    @Test func `a key of a test app passes and is marked`() throws {
        var trial = try Trial([
            Trial.policy(Trial.appID, []) { $0.testRoots = [Trial.authority.root] }
        ])
        var key = trial.enrolledKey(as: .test)
        let rule = Trial.rule { $0.apps = .named([Trial.appID]) }
        let verdict = try trial.send(try trial.request(), by: &key, rule)
        expectEqual(verdict.outcome, .pass)
        #expect(verdict.isTest)
        expectEqual(verdict.environment, .test)
    }

    /// Apps of all kinds, and whether a rule that names none admits their keys.
    @Test(
        arguments: [
            ([.production], false, true), ([.development, .production], false, true),
            ([.development], false, false), ([], true, false), ([.development], true, false),
        ] as [(Set<AttestationEnvironment>, Bool, Bool)]
    )
    func `a rule that names no apps admits keys of production apps alone`(
        environments: Set<AttestationEnvironment>,
        isTest: Bool,
        isAdmitted: Bool
    ) throws {
        let policy = Trial.policy(Trial.otherAppID, environments) {
            if isTest { $0.testRoots = [Trial.authority.root] }
        }
        var trial = try Trial([Trial.policy(), policy])
        let rules = [Trial.rule(), Trial.rule { $0.apps = .named([Trial.otherAppID]) }]
        let environment: KeyEnvironment =
            isTest ? .test : environments.contains(.production) ? .production : .development
        var key = trial.enrolledKey(
            Trial.device(appID: Trial.otherAppID),
            appID: Trial.otherAppID,
            as: environment
        )
        // Both by the table and, for a rule of an earlier configuration, by the rule itself.
        for known in [[], [rules[0]]] {
            trial.judge = Judge(
                apps: trial.policies,
                rules: known,
                decider: Decider(
                    keys: trial.keys,
                    challenges: trial.issuer,
                    sessions: trial.sessions
                )
            )
            let open = try trial.send(try trial.request(), by: &key, rules[0])
            expectEqual(open.outcome, isAdmitted ? .pass : .refuse(.appMismatch))
            // The log and the metrics tell whose key it was.
            expectEqual(open.appID, Trial.otherAppID)
            expectEqual(open.environment, environment)
            try expectEqual(trial.send(try trial.request(), by: &key, rules[1]).outcome, .pass)
        }
    }

    @Test(arguments: [AssertionDamage.highS, .lowS])
    func `s may lie on either side of half the order`(form: AssertionDamage) throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let verdict = try trial.send(try trial.request(), by: &key, damage: form)
        expectEqual(verdict.outcome, .pass)
    }

    @Test func `base64url without padding is read`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let verdict = try trial.send(try trial.request(), by: &key) { wire in
            for name in ["App-Attest-Key-Id", "App-Attest-Assertion"] {
                let text = (wire.value(name) ?? "").replacing("+", with: "-")
                wire.set(name, text.replacing("/", with: "_").replacing("=", with: ""))
            }
        }
        expectEqual(verdict.outcome, .pass)
    }

    @Test func `challenges and session ids are taken in their own spelling alone`() throws {
        for suffix in ["=", " A"] {
            var trial = try Trial()
            var key = trial.enrolledKey()
            var request = try trial.request()
            request.challenge = (request.challenge ?? "") + suffix
            try expectEqual(trial.send(request, by: &key).outcome, .refuse(.challengeUnknown))
        }
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        let good = try trial.send(trial.request(), by: &session) { wire in
            let text = (wire.value("App-Attest-Signature") ?? "").replacing("+", with: "-")
            wire.set(
                "App-Attest-Signature",
                text.replacing("/", with: "_").replacing("=", with: "")
            )
        }
        expectEqual(good.outcome, .pass)
        let padded = try trial.send(trial.request(), by: &session) { wire in
            wire.set("App-Attest-Session", (wire.value("App-Attest-Session") ?? "") + "=")
        }
        expectEqual(padded.outcome, .refuse(.sessionUnknown))
    }

    @Test func `names of a rule's own are looked for, and the standard ones are not`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let rule = Trial.rule { demands in
            demands.fields = FieldNames(
                keyID: Array("x-device".utf8),
                assertion: Array("x-proof".utf8),
                challenge: Array("x-nonce".utf8),
                unsupported: Array("x-no-proof".utf8)
            )
        }
        let names = [
            "App-Attest-Key-Id": "X-Device", "App-Attest-Assertion": "x-proof",
            "App-Attest-Challenge": "X-NONCE",
        ]
        let missed = try trial.send(try trial.request(), by: &key, rule)
        expectEqual(missed.outcome, .refuse(.assertionMissing))
        let found = try trial.send(try trial.request(), by: &key, rule) { wire in
            wire.fields = wire.fields.map { (names[$0.name] ?? $0.name, $0.value) }
        }
        expectEqual(found.outcome, .pass)
    }

    @Test func `a client that can't attest passes under a rule that says so, without a pass`()
        throws
    {
        var trial = try Trial()
        let rule = Trial.rule { $0.unsupported = .forward }
        var wire = Wire("GET", "/v1/orders")
        wire.set("App-Attest-Unsupported", "?1")
        let verdict = try trial.judge(wire, rule)
        expectEqual(verdict.outcome, .refuse(.unsupported))
        #expect(verdict.isExcused)
        expectEqual(Decision(verdict, rule: rule, isEnforced: true), .forward)
    }

    /// For the log and the origin.
    @Test(arguments: ["App-Attest-Assertion", "App-Attest-Challenge"])
    func `the key that a request names is known although something is missing`(
        missing: String
    ) throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let verdict = try trial.send(try trial.request(), by: &key) { $0.remove(missing) }
        expectEqual(verdict.keyID, key.keyID)
        expectEqual(verdict.appID, "")
    }

    @Test func `a client that says so and sends an assertion is judged by the assertion`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let rule = Trial.rule { $0.unsupported = .forward }
        let request = try trial.request()
        let verdict = try trial.send(request, by: &key, rule, damage: .signature) {
            $0.set("App-Attest-Unsupported", "1")
        }
        expectEqual(verdict.outcome, .refuse(.signatureMismatch))
        #expect(!verdict.isExcused)
    }

    private static func preflight() -> Wire {
        var wire = Wire("OPTIONS", "/v1/orders?dry=1")
        wire.set("Origin", "https://a.example")
        wire.set("Access-Control-Request-Method", "POST")
        return wire
    }

    @Test func `a preflight passes under a rule that says so, without a verdict of pass`() throws {
        var trial = try Trial()
        let rule = Trial.rule { $0.preflight = .forward }
        let verdict = try trial.judge(Self.preflight(), rule)
        expectEqual(verdict.outcome, .refuse(.preflight))
        #expect(verdict.keyID == nil && verdict.signer == nil)
        expectEqual(Decision(verdict, rule: rule, isEnforced: true), .forward)
        expectEqual(trial.judge.verifications, 0)
    }

    @Test func `a preflight is judged like any request where the rule says nothing`() throws {
        var trial = try Trial()
        let verdict = try trial.judge(Self.preflight(), Trial.rule())
        expectEqual(verdict.outcome, .refuse(.assertionMissing))
        expectEqual(
            Decision(verdict, rule: Trial.rule(), isEnforced: true),
            .refuse(.assertionMissing)
        )
    }

    @Test(arguments: [
        "Cookie", "Authorization", "X-HTTP-Method-Override", "x-key", "x-assertion", "x-challenge",
        "App-Attest-Key-Id",
    ])
    func `a preflight with anything to prove or to obey is judged`(name: String) throws {
        var trial = try Trial()
        let rule = Trial.rule {
            $0.preflight = .forward
            $0.fields = FieldNames(
                keyID: Array("x-key".utf8),
                assertion: Array("x-assertion".utf8),
                challenge: Array("x-challenge".utf8),
                unsupported: Array("x-unsupported".utf8)
            )
        }
        var wire = Self.preflight()
        wire.set(name, "DELETE")
        try expectEqual(trial.judge(wire, rule).outcome, .refuse(.assertionMissing))
    }
}
