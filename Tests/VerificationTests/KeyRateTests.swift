import AppAttest
import Expectations
import KeyStore
import Rules
import SoftwareAuthenticator
import Testing
import Tokens
import Verification

/// How often one device may make requests: what is counted, and when.
@Suite struct KeyRateTests {
    private static let second: UInt64 = 1_000_000_000
    private static let start: UInt64 = 1 << 40

    static func rate(
        _ count: Int = 1,
        per period: RateRule.Pace.Period = .second,
        burst: Int = 3,
        of rule: String = "place-order"
    ) throws -> RateRule {
        RateRule(try #require(RateRule.Pace(count, per: period)), burst: burst, of: rule)
    }

    private func trial(_ policies: [AppPolicy] = [Trial.policy()]) throws -> Trial {
        var trial = try Trial(policies)
        trial.tick = Self.start
        return trial
    }

    private func rule(
        _ mode: Mode = .enforce,
        burst: Int = 3,
        _ edit: (inout Rule.Demands) -> Void = { _ in }
    ) throws -> Rule {
        let rate = try Self.rate(burst: burst)
        return Trial.sessionRule(mode) { demands in
            demands.rate = rate
            edit(&demands)
        }
    }

    private func refusal(_ verdict: Verdict) -> Refusal? {
        guard case .refuse(let refusal) = verdict.outcome else { return nil }
        return refusal
    }

    // MARK: Over the rate

    @Test func `over the rate nothing is consumed: the same request passes when it is time`() throws
    {
        var trial = try trial()
        var key = trial.enrolledKey()
        let rule = try rule()
        for _ in 0..<3 {
            let verdict = try trial.send(trial.request(), by: &key, rule)
            expectEqual(verdict.outcome, .pass)
            expectEqual(verdict.rate, .counted)
        }
        let (counters, request) = (try trial.counters(key), try trial.request())
        let wire = Wire(request, key.proof(of: request, signing: rule.signing))
        for _ in 0..<5 {
            let verdict = try trial.judge(wire, rule)
            expectEqual(refusal(verdict), .keyThrottled)
            expectEqual(verdict.rate, .over(wait: Self.second))
            expectEqual(verdict.signer, key.keyID)
            expectEqual(verdict.level, .signed)
        }
        try expectEqual(trial.counters(key), counters)
        trial.tick += Self.second - 1
        try expectEqual(trial.judge(wire, rule).rate, .over(wait: 1))
        trial.tick += 1
        try expectEqual(trial.judge(wire, rule).outcome, .pass)
        try expectEqual(refusal(trial.judge(wire, rule)), .counterReplayed)
    }

    @Test func `a device over its rate costs its address nothing, until it floods`() throws {
        var trial = try trial()
        var (key, other) = (trial.enrolledKey(), trial.enrolledKey())
        let rule = try rule(burst: 1)
        /// How many of these requests were in vain.
        func inVain(_ count: Int, by key: inout SoftwareKey) throws -> Int {
            var found = 0
            for _ in 0..<count {
                let verdict = try trial.send(trial.request(), by: &key, rule)
                found += verdict.isInVain ? 1 : 0
            }
            return found
        }
        // One passes, 60 are forgiven.
        try expectEqual(inVain(61, by: &key), 0)
        try expectEqual(inVain(3, by: &key), 3)
        try expectEqual(inVain(9, by: &other), 0)
        // One passes, one is forgiven.
        trial.tick += Self.second
        try expectEqual(inVain(3, by: &key), 1)
        let forged = try trial.send(trial.request(), by: &other, rule, damage: .signature)
        #expect(forged.isInVain)
    }

    @Test func `each device has a rate of its own`() throws {
        var trial = try trial()
        let rule = try rule()
        for _ in 0..<50 {
            var key = trial.enrolledKey()
            let verdicts = try (0..<4).map { _ in
                refusal(try trial.send(trial.request(), by: &key, rule))
            }
            expectEqual(verdicts, [nil, nil, nil, .keyThrottled])
        }
    }

    @Test func `an Android phone's key is counted as an iPhone's`() throws {
        var trial = try Trial.ofBothApps()
        trial.tick = Self.start
        var key = trial.enrolledPhoneKey()
        let rule = try rule()
        let found = try (0..<5).map { _ in
            refusal(try trial.send(trial.request(), by: &key, rule))
        }
        expectEqual(found, [nil, nil, nil, .keyThrottled, .keyThrottled])
    }

    @Test func `sessions count as the key that they come from, all of them together`() throws {
        var trial = try trial()
        var key = trial.enrolledKey()
        let rule = try rule()
        var (one, two) = (try trial.openSession(&key), try trial.openSession(&key))
        try expectEqual(trial.send(trial.request(), by: &one, rule).outcome, .pass)
        try expectEqual(trial.send(trial.request(), by: &two, rule).outcome, .pass)
        try expectEqual(trial.send(trial.request(), by: &key, rule).outcome, .pass)
        let request = try trial.request()
        let proof = one.proof(of: request, signing: rule.signing)
        let wire = Wire(request, try #require(proof))
        try expectEqual(refusal(trial.judge(wire, rule)), .keyThrottled)
        try expectEqual(refusal(trial.send(trial.request(), by: &two, rule)), .keyThrottled)
        // Its sequence number was not used.
        trial.tick += Self.second
        try expectEqual(trial.judge(wire, rule).outcome, .pass)
    }

    // MARK: What costs the device nothing

    @Test func `what the device has not sent, or has sent before, costs it nothing`() throws {
        var trial = try trial()
        var key = trial.enrolledKey()
        let rule = try rule()
        var session = try trial.openSession(&key)
        let first = try trial.request()
        let replayed = Wire(first, key.proof(of: first, signing: rule.signing))
        try expectEqual(trial.judge(replayed, rule).outcome, .pass)
        let called = try trial.request()
        let proof = session.proof(of: called, signing: rule.signing)
        let replayedCall = Wire(called, try #require(proof))
        try expectEqual(trial.judge(replayedCall, rule).outcome, .pass)

        var expired = try trial.request()
        expired.challenge = "nonsense"
        for _ in 0..<20 {
            try expectEqual(refusal(trial.judge(replayed, rule)), .counterReplayed)
            try expectEqual(refusal(trial.judge(replayedCall, rule)), .sessionReplayed)
            let forged = try trial.send(trial.request(), by: &key, rule, damage: .signature)
            expectEqual(refusal(forged), .signatureMismatch)
            let unknown = try trial.send(expired, by: &key, rule)
            expectEqual(refusal(unknown), .challengeUnknown)
            let changed = try trial.send(trial.request(), by: &session, rule) {
                $0.target = "/v1/other"
            }
            expectEqual(refusal(changed), .sessionMismatch)
        }
        // Of three, two were made.
        try expectEqual(trial.send(trial.request(), by: &key, rule).outcome, .pass)
        try expectEqual(refusal(trial.send(trial.request(), by: &key, rule)), .keyThrottled)
    }

    @Test func `a spent challenge costs nothing, though the counter is new`() throws {
        var trial = try trial()
        var (key, other) = (trial.enrolledKey(), trial.enrolledKey())
        let rule = try rule()
        let request = try trial.request()
        try expectEqual(trial.send(request, by: &other, rule).outcome, .pass)
        for _ in 0..<10 {
            try expectEqual(refusal(trial.send(request, by: &key, rule)), .challengeSpent)
        }
        for _ in 0..<3 {
            try expectEqual(trial.send(trial.request(), by: &key, rule).outcome, .pass)
        }
    }

    @Test func `what the database finds to be a replay is given back`() throws {
        var trial = try trial()
        var key = trial.enrolledKey()
        let rule = try rule()
        for _ in 0..<10 {
            let verdict = try trial.send(trial.request(), by: &key, rule)
            expectEqual(verdict.outcome, .pass)
            trial.judge.takeBack(verdict.rate, of: key.keyID, rule)
        }
        // A verdict that was not counted gives nothing.
        trial.judge.takeBack(.uncounted, of: key.keyID, rule)
        trial.judge.takeBack(.over(wait: 1), of: key.keyID, rule)
        let found = try (0..<4).map { _ in
            refusal(try trial.send(trial.request(), by: &key, rule))
        }
        expectEqual(found, [nil, nil, nil, .keyThrottled])
    }

    // MARK: Content

    @Test func `a request is counted once, and its content is not held when it is too many`() throws
    {
        var trial = try trial()
        var key = trial.enrolledKey()
        let rule = try rule {
            $0.body = .held(limit: .mebibytes(1), memory: .kibibytes(1))
        }
        // With a digest in its head, and without.
        for round in 0..<3 {
            let verdict = try trial.send(trial.request(), by: &key, rule) {
                if round == 1 { $0.remove("Content-Digest") }
            }
            expectEqual(verdict.outcome, .pass, "\(round)")
        }
        let request = try trial.request()
        var wire = Wire(request, key.proof(of: request, signing: rule.signing))
        guard case .judged(let early) = try trial.open(wire, rule) else {
            Issue.record("its content is held")
            return
        }
        expectEqual(refusal(early), .keyThrottled)
        expectEqual(early.rate, .over(wait: Self.second))
        wire.remove("Content-Digest")
        try expectEqual(refusal(trial.judge(wire, rule)), .keyThrottled)
        trial.tick += Self.second
        try expectEqual(trial.judge(wire, rule).outcome, .pass)
    }

    // MARK: Decisions

    @Test func `a rule that observes counts, and forwards what it would refuse`() throws {
        var trial = try trial()
        var key = trial.enrolledKey()
        let rule = try rule(.observe)
        for _ in 0..<3 { _ = try trial.send(trial.request(), by: &key, rule) }
        let verdict = try trial.send(trial.request(), by: &key, rule)
        expectEqual(refusal(verdict), .keyThrottled)
        expectEqual(Decision(verdict, rule: rule, isEnforced: false), .forward)
        expectEqual(Decision(enforcing: rule, verdict), .refuse(.keyThrottled))
    }

    @Test func `no token stands in for a signature that is one too many`() throws {
        var trial = try trial()
        var key = trial.enrolledKey()
        let token = TokenProof(name: "t", index: 0, place: .field(Array("x-t".utf8)))
        let rule = try rule(burst: 1) {
            $0.accept = AcceptRule(assertions: true, sessions: false, tokens: [token])
            $0.also = [token]
        }
        let passed = try trial.send(trial.request(), by: &key, rule)
        expectEqual(passed.nextQuery(rule), .token(token))
        let verdict = try trial.send(trial.request(), by: &key, rule)
        expectEqual(refusal(verdict), .keyThrottled)
        expectEqual(verdict.nextQuery(rule), nil, "no token is asked about, so none is used")
    }

    // MARK: Rules

    @Test func `rules count apart, and a rule with another rate begins at zero`() throws {
        var trial = try trial()
        var key = trial.enrolledKey()
        let first = try rule(burst: 1)
        func send(_ rule: Rule) throws -> Refusal? {
            refusal(try trial.send(trial.request(), by: &key, rule))
        }
        try expectEqual([send(first), send(first)], [nil, .keyThrottled])
        // Read again, with the same rate.
        try expectEqual(send(try rule(burst: 1)), .keyThrottled)
        try expectEqual(send(try rule(burst: 2)), nil)
        let other = try Self.rate(burst: 1, of: "another")
        try expectEqual(send(try rule { $0.rate = other }), nil)
    }

    @Test func `rules of one rate decide alike, and those of two rates do not`() throws {
        let rates = [
            try Self.rate(of: "a"), try Self.rate(of: "b"), try Self.rate(2, of: "a"), nil,
        ]
        let rules = rates.map { rate in Trial.rule { $0.rate = rate } }
        #expect(rules[0].decidesLike(rules[1]))
        #expect(!rules[0].decidesLike(rules[2]))
        #expect(!rules[0].decidesLike(rules[3]))
        #expect(!rules[3].decidesLike(rules[0]))
    }
}
