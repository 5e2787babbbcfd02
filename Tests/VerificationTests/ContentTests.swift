import AppAttest
import Cryptography
import Encodings
import Expectations
import KeyStore
import RequestBinding
import Rules
import SoftwareAuthenticator
import Testing
import Verification

@Suite struct ContentTests {
    private static let held = Trial.rule {
        $0.body = .held(limit: .kibibytes(1), memory: .kibibytes(1))
    }

    // MARK: Streamed

    @Test func `streamed content must have the digest that was signed`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let request = try trial.request()
        let verdict = try trial.send(request, by: &key)
        expectEqual(verdict.expectedDigest, SHA256.digest(of: request.content))
    }

    @Test func `digests of other algorithms and a repeated one do no harm`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let verdict = try trial.send(try trial.request(), by: &key) { wire in
            let digest = wire.value("Content-Digest") ?? ""
            wire.set("Content-Digest", "sha-512=:AAAA:, \(digest)")
            wire.fields.append(("content-digest", digest))
        }
        expectEqual(verdict.outcome, .pass)
    }

    @Test func `chunked content of no known length is judged by its digest alike`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let verdict = try trial.send(try trial.request(), by: &key) { $0.framing = .chunked }
        expectEqual(verdict.outcome, .pass)
        #expect(verdict.expectedDigest != nil)
    }

    @Test func `a digest that nobody signs is not looked at`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let rule = Trial.rule {
            $0.signing = .lines([.method, .target, .challenge], headers: [])
            $0.body = .none
        }
        for digest in ["no digest's grammar", "sha-256=:AAAA:"] {
            let verdict = try trial.send(try trial.request(), by: &key, rule) {
                $0.set("Content-Digest", digest)
            }
            expectEqual(verdict.outcome, .pass)
            expectEqual(verdict.expectedDigest, nil)
        }
    }

    // MARK: Held

    @Test func `held content needs no digest in the head`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let verdict = try trial.send(try trial.request(), by: &key, Self.held) {
            $0.remove("Content-Digest")
        }
        expectEqual(verdict.outcome, .pass)
        expectEqual(verdict.expectedDigest, nil)
    }

    @Test func `held content is what the signature and a declared digest are compared with`() throws
    {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let signature = try trial.send(try trial.request(), by: &key, Self.held) {
            $0.remove("Content-Digest")
            $0.content[0] ^= 1
        }
        expectEqual(signature.outcome, .refuse(.signatureMismatch))
        let digest = try trial.send(try trial.request(), by: &key, Self.held) {
            $0.content[0] ^= 1
        }
        expectEqual(digest.outcome, .refuse(.digestMismatch))
        expectEqual(digest.keyID, key.keyID)
    }

    @Test func `nothing is held for a request without content`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let request = try trial.request(content: "")
        let proof = key.proof(of: request, signing: Self.held.signing)
        guard case .judged(let verdict) = try trial.open(Wire(request, proof), Self.held) else {
            Issue.record("held")
            return
        }
        expectEqual(verdict.outcome, .pass)
    }

    /// A request that is refused before its content is there.
    struct Early: Sendable, CustomTestStringConvertible {
        let refusal: Refusal
        /// Whether only a client is told beforehand that keeps its content back.
        let isForWaiting: Bool
        var challenge: String?
        var count = 10
        let key: @Sendable (Trial) -> SoftwareKey

        var testDescription: String { refusal.rawValue }

        static let all: [Early] = [
            Early(refusal: .keyUnknown, isForWaiting: false) { _ in Trial.device().makeKey() },
            Early(refusal: .keyRevoked, isForWaiting: false) { trial in
                let key = trial.enrolledKey()
                _ = trial.journal.revoke(key.keyID, at: 1)
                return key
            },
            Early(refusal: .appMismatch, isForWaiting: false) {
                $0.enrolledKey(appID: Trial.otherAppID)
            },
            Early(refusal: .contentTooLarge, isForWaiting: false, challenge: "AQEA", count: 2_000) {
                $0.enrolledKey()
            },
            Early(refusal: .counterReplayed, isForWaiting: true, challenge: "AQEA") {
                let five = SignCounter(rawValue: 5)
                return $0.enrolledKey(counters: CounterState(highest: five, seen: .max))
            },
            Early(refusal: .challengeUnknown, isForWaiting: true, challenge: "AQEA") {
                $0.enrolledKey()
            },
        ]
    }

    @Test(arguments: Early.all, [false, true])
    func `a client keeps its content when the head alone speaks against it`(
        early: Early,
        clientWaits: Bool
    ) throws {
        try keepsContent(early, clientWaits: clientWaits, hasDigest: false)
    }

    @Test(arguments: Early.all, [false, true])
    func `with a digest in the head, whatever speaks against it is said before content is held`(
        early: Early,
        clientWaits: Bool
    ) throws {
        try keepsContent(early, clientWaits: clientWaits, hasDigest: true)
    }

    private func keepsContent(_ early: Early, clientWaits: Bool, hasDigest: Bool) throws {
        var trial = try Trial()
        var key = early.key(trial)
        var request = try trial.request(content: String(repeating: "x", count: early.count))
        if let challenge = early.challenge { request.challenge = challenge }
        let proof = key.proof(of: request, signing: Self.held.signing)
        var wire = Wire(request, proof)
        if clientWaits { wire.set("Expect", "100-continue") }
        if !hasDigest { wire.remove("Content-Digest") }
        switch try trial.open(wire, Self.held) {
        case .judged(let verdict):
            expectEqual(verdict.outcome, .refuse(early.refusal))
            #expect(clientWaits || hasDigest || !early.isForWaiting)
        case .hold:
            #expect(!clientWaits && !hasDigest && early.isForWaiting)
            try expectEqual(trial.judge(wire, Self.held).outcome, .refuse(early.refusal))
        }
    }

    /// Content that comes anyway is judged in the order of the steps, the signature before the
    /// counter.
    @Test func `a replay with other content is refused for its signature`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let request = try trial.request()
        let proof = key.proof(of: request, signing: Self.held.signing)
        var wire = Wire(request, proof)
        wire.remove("Content-Digest")
        try expectEqual(trial.judge(wire, Self.held).outcome, .pass)
        try expectEqual(trial.judge(wire, Self.held).outcome, .refuse(.counterReplayed))
        wire.content[0] ^= 1
        try expectEqual(trial.judge(wire, Self.held).outcome, .refuse(.signatureMismatch))
    }

    @Test func `looking ahead uses nothing up, and what changed meanwhile counts`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let request = try trial.request()
        var wire = Wire(request, key.proof(of: request, signing: Self.held.signing))
        wire.set("Expect", "100-continue")
        let openings = [try trial.open(wire, Self.held), try trial.open(wire, Self.held)]
        try expectEqual(trial.counters(key).highest, .zero)
        let outcomes: [Verdict.Outcome] = openings.map { opening in
            guard case .hold(let proof) = opening else { return .failure(.store) }
            return trial.close(proof, wire, Self.held).outcome
        }
        expectEqual(outcomes, [.pass, .refuse(.counterReplayed)])
    }

    @Test func `with a digest in the head a worthless assertion holds nothing`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let request = try trial.request()
        let proof = key.proof(of: request, signing: Self.held.signing, damage: .signature)
        guard case .judged(let verdict) = try trial.open(Wire(request, proof), Self.held) else {
            Issue.record("held")
            return
        }
        expectEqual(verdict.outcome, .refuse(.signatureMismatch))
        expectEqual(trial.judge.verifications, 1)
    }

    @Test func `a signature that the head shows is verified once`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        try expectEqual(trial.send(try trial.request(), by: &key, Self.held).outcome, .pass)
        expectEqual(trial.judge.verifications, 1)
    }

    @Test func `a key that is revoked while its content is held is refused`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let request = try trial.request()
        let wire = Wire(request, key.proof(of: request, signing: Self.held.signing))
        guard case .hold(let proof) = try trial.open(wire, Self.held) else {
            Issue.record("not held")
            return
        }
        _ = trial.journal.revoke(key.keyID, at: 1)
        let verdict = trial.close(proof, wire, Self.held)
        expectEqual(verdict.outcome, .refuse(.keyRevoked))
    }

    @Test(arguments: [Self.held, Trial.rule(), Self.inside(.required), Self.inside(.optional)])
    func `content that came with the head is judged at once, as if it had been held`(
        rule: Rule
    ) throws {
        for (removesDigest, changes) in [
            (false, false), (false, true), (true, false), (true, true),
        ] {
            var trial = try Trial()
            var key = trial.enrolledKey()
            let content = #"{"auth":{"challenge":"\#(try trial.challenge())"}}"#
            let request = try trial.request(content: content)
            var wire = Wire(request, key.proof(of: request, signing: rule.signing))
            if removesDigest { wire.remove("Content-Digest") }
            if changes { wire.content[wire.content.count - 1] ^= 1 }
            let opened = try trial.open(wire, rule, content: wire.content)
            guard case .judged(let verdict) = opened else {
                Issue.record("held")
                continue
            }
            expectEqual(verdict.expectedDigest, nil)
            let held: Verdict.Outcome
            switch (removesDigest, changes) {
            case (true, _) where rule.body.isStreamed: held = .refuse(.digestMissing)
            case (false, true): held = .refuse(.digestMismatch)
            case (true, true): held = .refuse(.signatureMismatch)
            case (_, false): held = .pass
            }
            let how = "digest removed: \(removesDigest), changed: \(changes)"
            expectEqual(verdict.outcome, held, "\(how)")
        }
    }

    // MARK: A challenge inside the content

    private static func inside(_ need: ChallengeRule) -> Rule {
        Trial.rule {
            $0.signing = .content
            $0.challenge = need
            $0.challengeSource = .jsonPointer(JSONPointer(tokens: ["auth", "challenge"]))
            $0.body = .held(limit: .mebibytes(1), memory: .kibibytes(1))
        }
    }

    private func outcome(
        _ content: (String) -> String,
        _ need: ChallengeRule = .required,
        field: String? = nil
    ) throws -> Verdict.Outcome {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var request = try trial.request(content: content(try trial.challenge()))
        request.challenge = field
        return try trial.send(request, by: &key, Self.inside(need)).outcome
    }

    @Test func `a challenge is found at its place in the content`() throws {
        try expectEqual(outcome { #"{"auth":{"challenge":"\#($0)"},"a":[1,{}]}"# }, .pass)
        #expect(try outcome { #"{"auth":{"challenge":"\u0041QEA\#($0)"}}"# } != .pass)
    }

    @Test func `without a challenge in the content there is none`() throws {
        let missing = Verdict.Outcome.refuse(.challengeMissing)
        try expectEqual(outcome { #"{"auth":"\#($0)"}"# }, missing)
        try expectEqual(outcome { #"{"auth":{"challenge":"\#($0)","challenge":""}}"# }, missing)
        try expectEqual(outcome { #"{"auth":{"challenge":"\#($0)"}} x"# }, missing)
        try expectEqual(outcome { $0 }, .refuse(.clientDataAmbiguous))
        try expectEqual(outcome { _ in "" }, missing)
        try expectEqual(outcome({ #"{"auth":"\#($0)"}"# }, .optional), .pass)
        try expectEqual(outcome({ _ in "" }, .optional), .pass)
    }

    /// Reading ten megabytes of JSON takes a fifth of a second, in which nothing else is served.
    @Test(arguments: [ChallengeRule.required, .optional])
    func `content is read for its challenge once its signature is good`(_ need: ChallengeRule)
        throws
    {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let rule = Self.inside(need)
        let content = #"{"auth":{"challenge":"\#(try trial.challenge())"}}"#
        let request = try trial.request(content: content)
        for damage in [nil, AssertionDamage.signature] {
            let proof = key.proof(of: request, signing: rule.signing, damage: damage)
            guard case .hold(let held) = try trial.open(Wire(request, proof), rule) else {
                Issue.record("not held")
                continue
            }
            let content = Trial.Content(request.content)
            let verdict = trial.judge.close(
                held,
                content: content,
                rule: rule,
                in: trial.circumstances
            )
            expectEqual(verdict.outcome, damage == nil ? .pass : .refuse(.signatureMismatch))
            expectEqual(content.readings, damage == nil ? 1 : 0)
        }
        expectEqual(trial.judge.verifications, 2)
        // What came with the head is no JSON: were it read first, the challenge would be missing.
        let garbage = try trial.request(content: "{ no JSON")
        let forged = key.proof(of: garbage, signing: rule.signing, damage: .signature)
        let whole = try trial.open(Wire(garbage, forged), rule, content: garbage.content)
        guard case .judged(let verdict) = whole else {
            Issue.record("held")
            return
        }
        expectEqual(verdict.outcome, .refuse(.signatureMismatch))
    }

    @Test func `a challenge in the content that is not ours is refused`() throws {
        let unknown = try outcome { _ in #"{"auth":{"challenge":"AQEA"}}"# }
        expectEqual(unknown, .refuse(.challengeUnknown))
    }

    @Test func `where the content holds the challenge, the head's is not looked at`() throws {
        let content = { (text: String) in #"{"auth":{"challenge":"\#(text)"}}"# }
        try expectEqual(outcome(content, field: "garbage"), .pass)
        var trial = try Trial()
        var key = trial.enrolledKey()
        var request = try trial.request(content: "{}")
        #expect(request.challenge != nil)
        let refused = try trial.send(request, by: &key, Self.inside(.required)).outcome
        expectEqual(refused, .refuse(.challengeMissing))
        request.content = []
        let empty = try trial.send(request, by: &key, Self.inside(.required)).outcome
        expectEqual(empty, .refuse(.challengeMissing))
    }

    @Test func `a challenge in the content is spent once`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let rule = Self.inside(.required)
        let content = #"{"auth":{"challenge":"\#(try trial.challenge())"}}"#
        let request = try trial.request(content: content)
        try expectEqual(trial.send(request, by: &key, rule).outcome, .pass)
        let again = try trial.send(request, by: &key, rule)
        expectEqual(again.outcome, .refuse(.challengeSpent))
    }
}

extension BodyRule {
    fileprivate var isStreamed: Bool { if case .streamed = self { true } else { false } }
}
