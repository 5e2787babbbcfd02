import AppAttest
import Encodings
package import HTTPWire
package import KeyStore
import RequestBinding
package import Rules
package import Signatures
import Tokens

/// Judges requests. There is one on each event loop, since it keeps scratch memory.
package struct Judge {
    package let keyCheck: KeyCheck
    let decider: Decider
    private let reader: ProofReader
    private var clientData = ClientDataWriter()
    /// Those of the request that it judges.
    private(set) var circumstances = RequestCircumstances(now: UnixTime(seconds: 0), tick: 0)
    /// What devices have used of the rates of rules. All judges of a gateway have the same.
    package var rates = KeyRates()
    /// Signatures of keys that were verified, for the metrics.
    package internal(set) var verifications: UInt64 = 0

    /// - `apps`: the configured apps. Keys of other apps that are still in the store are refused.
    /// - `rules`: the rules that requests will have. Other rules work too, at a greater cost.
    package init(
        apps: [AppPolicy],
        rules: [Rule] = [],
        decider: Decider
    ) {
        keyCheck = KeyCheck(decider, apps: apps, rules: rules)
        self.decider = decider
        reader = ProofReader(decider: decider)
    }

    /// Judges a head, for a rule that observes or enforces.
    ///
    /// Checked in this order:
    ///
    /// 1. Of an assertion: presence of key id and assertion; of the challenge, where that is a
    ///    field; their syntax. Of a session: that nothing of an assertion is beside it; the syntax
    ///    of its fields; whether the rule takes sessions; whether the session is open.
    ///    Then, that the gateway sees the content, where it is signed.
    /// 2. That no signed field is repeated, and that the method does not read as one that is not
    ///    signed.
    /// 3. The syntax of Content-Digest; that content, where it has the challenge, and the digest,
    ///    where content streams, are there at all; that the digest is that of no bytes where there
    ///    are none.
    /// 4. Of content that came with the head: its digest, and whether it reads as another form's
    ///    client data.
    /// 5. As far as the content is here or its digest is stated: the key and all else that
    ///    ``rule(_:over:rule:length:)`` checks. A challenge in the content is looked for once its
    ///    signature is known to be good.
    ///
    /// The judge asks for content to hold only when no check has failed. With a stated digest these
    /// checks include the signature, so that a worthless assertion makes the gateway hold nothing.
    /// If the client sends its content only when asked, counter and challenge are checked before it
    /// is asked.
    ///
    /// - `bytes`: the head's bytes.
    /// - `content`: the whole content, where it came together with the head; empty otherwise.
    package mutating func open(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        rule: Rule,
        content: Span<UInt8> = Span(),
        in circumstances: RequestCircumstances
    ) -> HeadVerdict {
        self.circumstances = circumstances
        var proof: Proof
        let reading = reader.read(
            head,
            bytes,
            rule: rule,
            now: circumstances.now,
            isCut: circumstances.isCut
        )
        switch consume reading {
        case .unproven(let verdict): return .judged(verdict)
        case .claimed(let claimed): proof = claimed
        }
        if !circumstances.seesContent, rule.signing.coversBody {
            return .judged(proof.verdict(.refuse(.contentUnseen)))
        }
        if ClientDataWriter.repeatsSigned(head, bytes, for: rule) {
            return .judged(proof.verdict(.refuse(.signedFieldRepeated)))
        }
        if ClientDataWriter.isAmbiguous(head, bytes, in: rule.signing)
            || !circumstances.isExact && ClientDataWriter.isInexact(head, bytes, in: rule.signing)
        {
            return .judged(proof.verdict(.refuse(.clientDataAmbiguous)))
        }

        // Content that is not signed is not compared with anything.
        switch rule.signing.coversBody ? ClientDataWriter.declaredDigest(head, bytes) : .absent {
        case .digest(let bytes): proof.declared = SHA256Digest(bytes.span)
        case .absent: break
        case .malformed: return .judged(proof.verdict(.refuse(.digestMissing)))
        }
        let hasContent = head.framing.hasContent
        let isHeld = if case .held = rule.body { true } else { false }
        if !hasContent, rule.challenge == .required, rule.challengeSource != .field {
            return .judged(proof.verdict(.refuse(.challengeMissing)))
        }
        if hasContent, !isHeld, rule.signing.coversBody, proof.declared == nil {
            return .judged(proof.verdict(.refuse(.digestMissing)))
        }
        if !hasContent, let declared = proof.declared, declared != ClientDataWriter.emptyDigest {
            return .judged(proof.verdict(.refuse(.digestMismatch)))
        }
        if !content.isEmpty, rule.signing.coversBody {
            return .judged(ruleWhole(proof, of: head, bytes, content: content, rule: rule))
        }
        guard hasContent, isHeld else {
            let digest = hasContent ? proof.declared : ClientDataWriter.emptyDigest
            let signed = clientData.digest(head, bytes, for: rule, content: digest, of: proof)
            var verdict = self.rule(proof, over: signed, rule: rule, length: head.framing)
            if hasContent, rule.signing.coversBody { verdict.expectedDigest = proof.declared }
            return .judged(verdict)
        }
        return hold(proof, of: head, bytes, rule: rule)
    }

    /// Judges the head of a request whose content has to be held.
    private mutating func hold(
        _ proof: Proof,
        of head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        rule: Rule
    ) -> HeadVerdict {
        var proof = proof
        if let declared = proof.declared, case .lines = rule.signing {
            let signed = clientData.digest(head, bytes, for: rule, content: declared, of: proof)
            switch examine(proof, over: signed, rule: rule, length: head.framing) {
            case .refused(let verdict): return .judged(verdict)
            case .good(let verified):
                (proof.verified, proof.signed) = (verified, signed)
                return .hold(proof)
            }
        }
        let verdict = lookAhead(
            proof,
            rule: rule,
            length: head.framing,
            clientWaits: head.expectsContinue
        )
        if let verdict { return .judged(verdict) }
        if case .lines(let parts, let headers) = rule.signing {
            clientData.split(head, bytes, parts: parts, headers: headers, into: &proof)
        }
        return .hold(proof)
    }

    /// Judges a request whose content came together with its head: nothing needs to be held.
    private mutating func ruleWhole(
        _ proof: Proof,
        of head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        content: Span<UInt8>,
        rule: Rule
    ) -> Verdict {
        let digest = SHA256.digest(content)
        if let declared = proof.declared, declared != digest {
            return proof.verdict(.refuse(.digestMismatch))
        }
        if case .content = rule.signing, ClientDataWriter.isAmbiguous(content) {
            return proof.verdict(.refuse(.clientDataAmbiguous))
        }
        let signed = clientData.digest(head, bytes, for: rule, content: digest, of: proof)
        var verdict = proof.verdict(.pass)
        let length = head.framing
        guard
            let checked = verify(proof, over: signed, rule: rule, length: length, &verdict)
        else { return verdict }
        var proof = proof
        if let pointer = rule.challengePointer { proof.challenge = pointer.string(in: content) }
        conclude(checked, of: proof, rule: rule, &verdict)
        return verdict
    }

    /// Judges content that was held.
    ///
    /// - `circumstances`: those of now; other requests of the address may have come meanwhile.
    package mutating func close(
        _ proof: Proof,
        content: some WholeContent,
        rule: Rule,
        in circumstances: RequestCircumstances
    ) -> Verdict {
        self.circumstances = circumstances
        let digest = content.digest()
        if let declared = proof.declared, declared != digest {
            return proof.verdict(.refuse(.digestMismatch))
        }
        if let verified = proof.verified { return admit(verified, of: proof, rule: rule) }
        if case .content = rule.signing, ClientDataWriter.isAmbiguous(content.start.span) {
            return proof.verdict(.refuse(.clientDataAmbiguous))
        }
        let signed = clientData.digest(digest, for: rule, of: proof)
        var verdict = proof.verdict(.pass)
        guard let checked = verify(proof, over: signed, rule: rule, length: .none, &verdict)
        else { return verdict }
        var proof = proof
        if let pointer = rule.challengePointer {
            // Held content can't be read again, so the challenge in it can't be judged.
            guard let text = content.text() else {
                verdict.outcome = .refuse(.spillFailed)
                return verdict
            }
            proof.challenge = pointer.string(in: text.span)
        }
        conclude(checked, of: proof, rule: rule, &verdict)
        return verdict
    }
}

/// What the judge knows of a request beside its bytes: when it is judged, and how it came.
package struct RequestCircumstances: Sendable {
    /// The wall clock.
    package let now: UnixTime
    /// The time by which rates are counted, in monotonic nanoseconds.
    package let tick: UInt64
    /// Whether the client's address has verifications left. If not, a request that needs one is
    /// refused.
    package var mayVerify = true
    /// Whether all of the request's content comes to the gateway.
    package var seesContent = true
    /// Whether the target and the field lines are the client's own bytes.
    package var isExact = true
    /// Whether content that should have come to the gateway did not.
    package var isCut = false

    package init(now: UnixTime, tick: UInt64) { (self.now, self.tick) = (now, tick) }
}

/// Content that was held until it was whole.
package protocol WholeContent {
    /// At least the first ``RequestBinding/ClientDataDomain/startCount`` bytes.
    var start: [UInt8] { get }
    /// SHA-256 of the content.
    func digest() -> SHA256Digest
    /// The content; `nil` where it can't be read again. Asked for when the rule takes the challenge
    /// out of it, and its signature is good: reading a long text costs more than any other check.
    func text() -> [UInt8]?
}

// Uses up counter and challenge of a good request with an assertion.
extension Judge {
    /// Uses counter and challenge in one step of the store, at once or at its commit.
    func consume(
        _ use: CounterUse,
        of keyID: KeyID,
        rule: Rule,
        _ verdict: inout Verdict
    ) {
        let outcome = decider.consume(
            use,
            now: circumstances.now.seconds,
            durability: rule.survivesCrash ? .behind : .awaited,
            whenFailing: rule.onError == .forward ? .useInMemory : .decline
        )
        switch outcome {
        case .decided(let decision):
            verdict.settle(decision)
            if case .refused = decision { takeBack(verdict.rate, of: keyID, rule) }
        case .pending(let ticket):
            switch decider.decides {
            case .inMemory:
                verdict.settle(.admitted)
                verdict.pending = .durability(ticket)
            case .atCommit: verdict.pending = .verdict(ticket)
            }
        }
    }
}

extension CounterRule {
    /// The rule in the store's form.
    var store: StoreCounterRule {
        switch self {
        case .strict: .strict
        case .window(let width): .window(width)
        }
    }
}
