import Expectations
import KeyStore
import Rules
import SoftwareAuthenticator
import Testing
import Verification

/// What a refused request may cost: cheap checks come first, and nothing is written.
@Suite struct CostTests {
    /// What has been done to the store so far.
    private static func writes(_ trial: Trial) -> [UInt64] {
        let statistics = trial.keys.committer.statistics
        return [statistics.commits, statistics.counters, UInt64(statistics.depth)]
    }

    @Test func `a bad signature costs one verification and no write`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let before = Self.writes(trial)
        let counters = try trial.counters(key)
        for number in 1...50 as ClosedRange<UInt64> {
            let verdict = try trial.send(try trial.request(), by: &key, damage: .signature)
            expectEqual(verdict.outcome, .refuse(.signatureMismatch))
            expectEqual(verdict.pending, .nothing)
            expectEqual(trial.judge.verifications, number)
        }
        try trial.keys.committer.flush()
        expectEqual(Self.writes(trial), before)
        try expectEqual(trial.counters(key), counters)
    }

    @Test func `an unknown key costs no verification and no memory`() throws {
        var trial = try Trial()
        _ = trial.enrolledKey()
        _ = trial.keys.find(Trial.device().makeKey().keyID)
        let (count, bytes) = (trial.keys.count, trial.keys.bytes)
        let before = Self.writes(trial)
        for _ in 0..<200 {
            var stranger = Trial.device().makeKey()
            let verdict = try trial.send(try trial.request(), by: &stranger)
            expectEqual(verdict.outcome, .refuse(.keyUnknown))
        }
        expectEqual(trial.judge.verifications, 0)
        expectEqual(trial.keys.count, count)
        expectEqual(trial.keys.bytes, bytes)
        expectEqual(Self.writes(trial), before)
    }

    /// Faults that show without arithmetic.
    private static let cheap: Set<Fault> = [
        .assertionMissing, .challengeMissing, .keyIDMalformed, .digestMissing, .keyUnknown,
    ]

    @Test(arguments: Fault.allCases)
    func `what shows without a signature costs none, the rest costs one`(fault: Fault) throws {
        var trial = try Trial()
        var key = fault == .keyUnknown ? Trial.device().makeKey() : trial.enrolledKey()
        var request = try trial.request()
        if fault == .challengeUnknown { request.challenge = "AQEA" }
        _ = try trial.send(request, by: &key, damage: .signature) { wire in
            if fault == .assertionMissing { wire.remove("App-Attest-Assertion") }
            if fault == .challengeMissing { wire.remove("App-Attest-Challenge") }
            if fault == .keyIDMalformed { wire.set("App-Attest-Key-Id", "AAAA") }
            if fault == .digestMissing { wire.remove("Content-Digest") }
        }
        expectEqual(trial.judge.verifications, Self.cheap.contains(fault) ? 0 : 1)
    }

    @Test func `a replay costs one verification and no write`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        try expectEqual(trial.send(try trial.request(), by: &key).outcome, .pass)
        try trial.keys.committer.flush()
        let before = Self.writes(trial)
        let request = try trial.request()
        let verdict = try trial.send(request, by: &key, damage: .counterRepeated)
        expectEqual(verdict.outcome, .refuse(.counterReplayed))
        expectEqual(trial.judge.verifications, 2)
        try trial.keys.committer.flush()
        expectEqual(Self.writes(trial), before)
    }

    @Test(arguments: [false, true])
    func `an address without verifications left costs none`(isHeld: Bool) throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let rule = Trial.rule {
            if isHeld { $0.body = .held(limit: .kibibytes(1), memory: .kibibytes(1)) }
        }
        let request = try trial.request()
        let wire = Wire(request, key.proof(of: request, signing: rule.signing))
        let opening = try trial.open(wire, rule, mayVerify: false)
        guard case .judged(let verdict) = opening else {
            Issue.record("the content is asked for")
            return
        }
        expectEqual(verdict.outcome, .refuse(.addressThrottled))
        expectEqual(verdict.keyID, key.keyID)
        expectEqual(trial.judge.verifications, 0)

        var stranger = Trial.device().makeKey()
        let unknown = Wire(request, stranger.proof(of: request, signing: rule.signing))
        guard case .judged(let other) = try trial.open(unknown, rule, mayVerify: false) else {
            Issue.record("the content is asked for")
            return
        }
        expectEqual(other.outcome, .refuse(.keyUnknown), "what is cheap to say is said")
    }

    @Test func `to be throttled is an observation where a rule observes`() throws {
        let verdict = Verdict(.refuse(.addressThrottled))
        let observed = Decision(verdict, rule: Trial.rule(.observe), isEnforced: false)
        expectEqual(observed, .forward)
        let enforced = Decision(verdict, rule: Trial.rule(), isEnforced: true)
        expectEqual(enforced, .refuse(.addressThrottled))
    }
}
