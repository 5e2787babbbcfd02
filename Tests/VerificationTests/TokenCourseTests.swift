import AppAttest
import Cryptography
import Expectations
import HTTPWire
import KeyStore
import Rules
import Signatures
import Testing

@testable import Verification

/// The order in which a request's tokens are checked, and what becomes of their results.
struct TokenCourseTests {
    private static let check = token("check", 0)
    private static let human = token("human", 1)
    private static let lenient = token("lenient", 2, .forward)

    private static func token(
        _ name: String,
        _ index: Int,
        _ onError: DependencyErrorRule = .refuse
    ) -> TokenProof {
        TokenProof(name: name, index: index, place: .field(Array(name.utf8)), onError: onError)
    }

    private static func rule(_ change: (inout Rule.Demands) -> Void) -> Rule {
        var demands = Rule.Demands(salt: "r", mode: .enforce)
        change(&demands)
        return Rule(
            id: "r",
            index: 0,
            match: .all,
            origin: OriginIndex(0),
            demands: demands
        )
    }

    private static func accepting(_ tokens: TokenProof..., also: [TokenProof] = []) -> Rule {
        rule {
            $0.accept = AcceptRule(assertions: true, sessions: false, tokens: tokens)
            $0.also = also
        }
    }

    private static var passed: Verdict {
        var verdict = Verdict(.pass, proof: .assertion)
        verdict.level = .complete
        return verdict
    }

    /// Answers the queries in their order, each of which has to be for this token.
    private static func settled(
        _ verdict: Verdict,
        _ rule: Rule,
        _ answers: (TokenProof, TokenFinding)...
    ) -> Verdict {
        var verdict = verdict
        for (proof, finding) in answers {
            expectEqual(verdict.nextQuery(rule), .token(proof))
            verdict.settle(.token(proof, finding), rule)
        }
        expectEqual(verdict.nextQuery(rule), nil)
        return verdict
    }

    private static func isForwarded(_ verdict: Verdict, _ rule: Rule) -> Bool {
        Decision(enforcing: rule, verdict) == .forward
    }

    @Test func `a rule that names no token asks for none`() {
        let rule = Self.rule { _ in }
        expectEqual(Verdict(.refuse(.assertionMissing)).nextQuery(rule), nil)
        expectEqual(Self.passed.nextQuery(rule), nil)
    }

    @Test func `a request that has proved itself needs no token in its place`() {
        expectEqual(Self.passed.nextQuery(Self.accepting(Self.check)), nil)
    }

    @Test func `tokens are tried in their order until one is good`() {
        let rule = Self.accepting(Self.check, Self.human)
        let verdict = Self.settled(
            Verdict(.refuse(.assertionMissing)),
            rule,
            (Self.check, .expired),
            (Self.human, .good)
        )
        #expect(verdict.outcome == .pass && verdict.proof == .token(Self.human))
        expectEqual(verdict.tokens.instead, nil)
    }

    @Test func `a token in the place of a bad signature proves no key`() {
        let rule = Self.accepting(Self.check)
        var bad = Verdict(.refuse(.signatureMismatch), proof: .assertion)
        bad.appID = "app"
        bad.environment = .production
        let verdict = Self.settled(bad, rule, (Self.check, .good))
        #expect(verdict.outcome == .pass && verdict.keyID == nil && verdict.environment == nil)
        #expect(verdict.signer == nil && verdict.appID.isEmpty && verdict.level == .claimed)
        expectEqual(verdict.tokens.instead, .signatureMismatch)
    }

    @Test(arguments: [
        (TokenFinding.missing, Refusal.assertionMissing), (.malformed, .proofMalformed),
        (.invalid, .proofInvalid), (.expired, .proofExpired), (.spent, .proofSpent),
        (.refused, .proofRefused), (.throttled, .proofThrottled),
    ])
    func `without a signature the token's fault is the reason`(
        _ finding: TokenFinding,
        _ refusal: Refusal
    ) {
        let rule = Self.accepting(Self.check)
        let verdict = Self.settled(
            Verdict(.refuse(.assertionMissing)),
            rule,
            (Self.check, finding)
        )
        expectEqual(verdict.outcome, .refuse(refusal))
    }

    @Test func `a signature that is no good stays the reason`() {
        let rule = Self.accepting(Self.check)
        for finding in [TokenFinding.missing, .invalid, .spent, .unavailable] {
            let bad = Verdict(.refuse(.counterReplayed), proof: .assertion)
            let verdict = Self.settled(bad, rule, (Self.check, finding))
            expectEqual(verdict.outcome, .refuse(.counterReplayed))
        }
    }

    @Test(arguments: Refusal.allCases)
    func `a token makes good a fault of the proof alone`(_ refusal: Refusal) {
        let subjects: Set<RefusalRow.Subject> = [
            .proof, .key, .content, .device, .session, .store,
        ]
        let query = Verdict(.refuse(refusal)).nextQuery(Self.accepting(Self.check))
        let isOfProof = subjects.contains(refusal.row.subject)
        expectEqual(query, isOfProof ? .token(Self.check) : nil)
    }

    @Test func `a token that can't be checked is as on_error says`() {
        let missing = Verdict(.refuse(.assertionMissing))
        let strict = Self.accepting(Self.check)
        let refused = Self.settled(missing, strict, (Self.check, .unavailable))
        #expect(refused.outcome == .failure(.proof) && !Self.isForwarded(refused, strict))
        let rule = Self.accepting(Self.lenient)
        let forwarded = Self.settled(missing, rule, (Self.lenient, .unavailable))
        #expect(forwarded.outcome == .failure(.proof) && Self.isForwarded(forwarded, rule))
        let none = Self.settled(missing, rule, (Self.lenient, .missing))
        expectEqual(none.outcome, .refuse(.assertionMissing))
    }

    @Test func `what a rule asks for beside is asked after the proof, and all of it`() {
        let rule = Self.accepting(also: [Self.check, Self.human])
        let good = Self.settled(Self.passed, rule, (Self.check, .good), (Self.human, .good))
        #expect(good.outcome == .pass && good.takenProofs == "assertion, check, human")
        let refused = Self.settled(Self.passed, rule, (Self.check, .missing))
        expectEqual(refused.outcome, .refuse(.proofMissing))
        expectEqual(Verdict(.refuse(.assertionMissing)).nextQuery(rule), nil)
    }

    @Test func `one that forwards on errors does not free from the next`() {
        let rule = Self.accepting(also: [Self.lenient, Self.check])
        let refused = Self.settled(
            Self.passed,
            rule,
            (Self.lenient, .unavailable),
            (Self.check, .missing)
        )
        expectEqual(refused.outcome, .refuse(.proofMissing))
        let forwarded = Self.settled(
            Self.passed,
            rule,
            (Self.lenient, .unavailable),
            (Self.check, .good)
        )
        #expect(forwarded.outcome == .failure(.proof) && Self.isForwarded(forwarded, rule))
        let failed = Self.settled(
            Self.passed,
            rule,
            (Self.lenient, .unavailable),
            (Self.check, .unavailable)
        )
        #expect(!Self.isForwarded(failed, rule))
    }

    @Test func `a failing store does not free from a token beside that can't be checked`() {
        var rule = Self.accepting(also: [Self.check])
        var demands = rule.demands
        demands.onError = .forward
        rule = Self.rule { $0 = demands }
        var unassured = Self.passed
        unassured.outcome = .failure(.store)
        let verdict = Self.settled(unassured, rule, (Self.check, .unavailable))
        #expect(!Self.isForwarded(verdict, rule))
    }

    @Test func `a device whose bits are not known does not free from another party that failed`() {
        let rule = Self.rule {
            $0.also = [Self.check]
            $0.device = DeviceRule(
                refused: [DeviceBits(bit0: true, bit1: false)],
                onError: .forward
            )
        }
        var verdict = Self.passed
        for answer in [QueryAnswer.token(Self.check, .unavailable), .device(.unavailable)] {
            expectEqual(verdict.nextQuery(rule), answer.query)
            verdict.settle(answer, rule)
        }
        #expect(verdict.outcome == .failure(.proof) && !Self.isForwarded(verdict, rule))
        // The store has failed, too, and the rule refuses then.
        var unassured = Self.passed
        unassured.outcome = .failure(.store)
        unassured.settle(.device(.unavailable), rule)
        #expect(unassured.outcome == .failure(.store) && !Self.isForwarded(unassured, rule))
        var known = Self.passed
        known.settle(.device(.unavailable), rule)
        #expect(known.outcome == .failure(.deviceCheck) && Self.isForwarded(known, rule))
    }

    @Test func `a token in the place of a signature still needs those beside`() {
        let rule = Self.accepting(Self.lenient, also: [Self.check])
        let missing = Verdict(.refuse(.assertionMissing))
        for finding in [TokenFinding.good, .unavailable] {
            let verdict = Self.settled(
                missing,
                rule,
                (Self.lenient, finding),
                (Self.check, .missing)
            )
            expectEqual(verdict.outcome, .refuse(.proofMissing))
        }
    }

    @Test func `a device that can't attest may be asked for a token`() {
        let rule = Self.rule { $0.unsupported = .require(Self.human) }
        let unable = Verdict(.refuse(.unsupported))
        let good = Self.settled(unable, rule, (Self.human, .good))
        #expect(good.outcome == .pass && good.proof == .token(Self.human))
        let missing = Self.settled(unable, rule, (Self.human, .missing))
        expectEqual(missing.outcome, .refuse(.proofMissing))
        expectEqual(Verdict(.refuse(.assertionMissing)).nextQuery(rule), nil)
    }

    // MARK: Play Integrity

    private static let play = token("play", 3)
    private static let patient = token("patient", 4, .forward)

    private static func asking(
        _ proof: TokenProof,
        _ action: IntegrityRule.Action,
        also: [TokenProof] = []
    ) -> Rule {
        rule {
            var integrity = IntegrityRule(proof)
            (integrity.device, integrity.action) = ([.device], action)
            $0.integrity = integrity
            $0.also = also
        }
    }

    private static var ofPhone: Verdict {
        var verdict = passed
        verdict.tokens.binding = IntegrityBinding(
            package: "com.example.shop",
            keyID: KeyID(of: P256PrivateKey().publicKey),
            clientDataHash: SHA256.digest(of: [])
        )
        return verdict
    }

    private static var good: TokenFinding {
        var verdict = IntegrityVerdict()
        verdict.device = [.device]
        return .verdict(verdict)
    }

    @Test func `only a phone with Android that has signed is asked for an integrity token`() {
        let rule = Self.asking(Self.play, .refuse, also: [Self.human])
        expectEqual(Self.passed.nextQuery(rule), .token(Self.human))
        let iPhone = Self.settled(Self.passed, rule, (Self.human, .good))
        #expect(iPhone.outcome == .pass && iPhone.tokens.integrity == nil)
        let phone = Self.settled(Self.ofPhone, rule, (Self.human, .good), (Self.play, Self.good))
        #expect(phone.outcome == .pass && phone.takenProofs == "assertion, human, play")
        // A refused request costs no call.
        #expect(Self.settled(Self.ofPhone, rule, (Self.human, .missing)).tokens.integrity == nil)
        let failed = Self.settled(Self.ofPhone, rule, (Self.human, .unavailable))
        #expect(failed.tokens.integrity == nil && failed.outcome == .failure(.proof))
        expectEqual(Verdict(.refuse(.signatureMismatch)).nextQuery(rule), nil)
    }

    private static let findings: [TokenFinding] = [
        .missing, .malformed, .invalid, .expired, .spent, .refused, .throttled, .unavailable,
        .verdict(IntegrityVerdict()), .good,
    ]

    @Test func `a rule that marks refuses nothing`() {
        let rule = Self.asking(Self.play, .mark)
        for finding in Self.findings {
            let verdict = Self.settled(Self.ofPhone, rule, (Self.play, finding))
            #expect(verdict.outcome == .pass && verdict.takenProofs == "assertion")
            expectEqual(verdict.tokens.integrity?.isMet, false)
        }
        expectEqual(
            Self.settled(Self.ofPhone, rule, (Self.play, Self.good)).tokens.integrity?.isMet,
            true
        )
    }

    @Test func `a rule that refuses does so for each reason, and for a failure by on_error`() {
        for proof in [Self.play, Self.patient] {
            let rule = Self.asking(proof, .refuse)
            for finding in Self.findings where finding != .unavailable && finding != .good {
                let verdict = Self.settled(Self.ofPhone, rule, (proof, finding))
                #expect(verdict.refusal != nil && !Self.isForwarded(verdict, rule), "\(finding)")
            }
            let failed = Self.settled(Self.ofPhone, rule, (proof, .unavailable))
            expectEqual(failed.outcome, .failure(.proof))
            expectEqual(Self.isForwarded(failed, rule), proof == Self.patient)
        }
    }
}
