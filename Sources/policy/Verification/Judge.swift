import AppAttest
package import Challenges
package import Cryptography
package import HTTPWire
import JSONText
package import KeyStore
import RequestBinding
package import Rules

/// Judges requests; one on each lane, since it keeps scratch memory.
package struct Judge {
    let keys: KeyTable
    let challenges: ChallengeIssuer
    let apps: [AppNumber: AppPolicy]
    let admissions: AppAdmissions
    var lines = RequestLines()
    /// Whether a signature may be verified now.
    var mayVerify = true
    /// Signatures that were verified, for the metrics.
    package internal(set) var verifications: UInt64 = 0

    /// - `apps`: keys of other apps, left in the store, are refused.
    /// - `rules`: those that the requests will have; others are judged all the same, at a
    ///   greater cost.
    package init(
        apps: [AppPolicy],
        rules: [Rule] = [],
        keys: KeyTable,
        challenges: ChallengeIssuer
    ) {
        self.keys = keys
        self.challenges = challenges
        self.apps = Dictionary(
            uniqueKeysWithValues: apps.map {
                (keys.number(ofApp: $0.id), $0)
            }
        )
        admissions = AppAdmissions(rules, self.apps)
    }

    /// SHA-256 of no bytes.
    static let emptyDigest = SHA256.digest(Span())

    /// Judges what a head shows, for a rule that observes or enforces.
    ///
    /// Checked in this order: presence of assertion, key id and challenge; their syntax; that no
    /// signed field is repeated; the syntax of Content-Digest; the key; then, as far as the content
    /// is here or its digest is stated, all that ``rule(_:_:rule:now:length:)`` checks. Content to
    /// hold is asked for only when nothing speaks against it: with a stated digest that includes
    /// the signature, so that a worthless assertion holds nothing. A client that keeps its content
    /// back until it is asked for it is told beforehand when counter or challenge are of no use.
    ///
    /// - `octets`: the head's bytes.
    /// - `now`: the wall clock.
    /// - `mayVerify`: whether the client's address has verifications left; without, what would
    ///   need one is refused.
    /// - `content`: all of the content, where it came together with the head; empty otherwise.
    package mutating func open(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        rule: Rule,
        now: UnixTime,
        mayVerify: Bool = true,
        content: Span<UInt8> = Span()
    ) -> Opening {
        self.mayVerify = mayVerify
        let fields = ProofFields(head.fields, octets, names: rule.fields)
        if rule.preflight == .forward, fields.isEmpty, head.isPreflight(octets) {
            return .ruled(.preflight)
        }
        guard let keyText = fields.keyID, let assertionText = fields.assertion else {
            return .ruled(Self.unproven(rule, fields, named(fields, octets)))
        }
        // Where the challenge is part of the content, a copy in the head is nobody's business.
        let isInHead = rule.challenge != .none && rule.challengeSource == .field
        let challenge = isInHead ? fields.challenge : nil
        if isInHead, rule.challenge == .required, challenge == nil {
            return .ruled(Ruling(.refuse(.challengeMissing), keyID: named(fields, octets)))
        }
        guard !fields.isAmbiguous, let keyID = KeyID(base64: octets.extracting(keyText)),
            let assertion = Self.assertion(octets.extracting(assertionText))
        else { return .ruled(Ruling(.refuse(.assertionMalformed), keyID: named(fields, octets))) }
        if let ruling = Self.repetition(head, octets, rule, keyID) { return .ruled(ruling) }
        if isAmbiguous(head, octets, rule.signing) { return .ruled(Self.ambiguous(keyID)) }

        // Content that nobody signs is not compared with anything.
        var declared: SHA256Digest?
        switch rule.signing.coversBody ? Self.declaredDigest(head, octets) : .absent {
        case .digest(let octets): declared = SHA256Digest(octets.span)
        case .absent: break
        case .malformed: return .ruled(Ruling(.refuse(.digestMissing), keyID: keyID))
        }
        let hasContent = head.framing != .none && head.framing != .length(0)
        let isHeld = if case .held = rule.body { true } else { false }
        if !hasContent, rule.challenge == .required, rule.challengeSource != .field {
            return .ruled(Ruling(.refuse(.challengeMissing), keyID: keyID))
        }
        if hasContent, !isHeld, rule.signing.coversBody, declared == nil {
            return .ruled(Ruling(.refuse(.digestMissing), keyID: keyID))
        }
        if !hasContent, let declared, declared != Self.emptyDigest {
            return .ruled(Ruling(.refuse(.digestMismatch), keyID: keyID))
        }
        let proof = Proof(
            keyID: keyID,
            assertion: assertion,
            challenge: challenge.map { Self.copy(octets.extracting($0)) },
            declared: declared,
            linesBefore: [],
            linesBehind: []
        )
        if !content.isEmpty, rule.signing.coversBody {
            return .ruled(ruleWhole(proof, head, octets, content, rule: rule, now: now))
        }
        guard hasContent, isHeld else {
            let digest = hasContent ? declared : Self.emptyDigest
            let hash = clientDataHash(head, octets, rule, digest, proof.challenge)
            var ruling = self.rule(proof, hash, rule: rule, now: now, length: head.framing)
            if hasContent, rule.signing.coversBody { ruling.expectedDigest = declared }
            return .ruled(ruling)
        }
        return hold(proof, head, octets, rule: rule, now: now)
    }

    /// Judges what a head shows of a request whose content has to be held.
    private mutating func hold(
        _ proof: Proof,
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        rule: Rule,
        now: UnixTime
    ) -> Opening {
        var proof = proof
        if let declared = proof.declared, case .lines = rule.signing {
            let hash = clientDataHash(head, octets, rule, declared, proof.challenge)
            switch examine(proof, hash, rule: rule, now: now, length: head.framing) {
            case .refused(let ruling): return .ruled(ruling)
            case .good(let verified):
                proof.verified = verified
                return .hold(proof)
            }
        }
        let ruling = lookAhead(
            proof,
            rule: rule,
            now: now,
            length: head.framing,
            clientWaits: head.expectsContinue
        )
        if let ruling { return .ruled(ruling) }
        if case .lines(let parts, let headers) = rule.signing {
            proof = split(head, octets, parts, headers, proof)
        }
        return .hold(proof)
    }

    /// Judges a request whose content came together with its head: nothing needs to be kept.
    private mutating func ruleWhole(
        _ proof: Proof,
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        _ content: Span<UInt8>,
        rule: Rule,
        now: UnixTime
    ) -> Ruling {
        let digest = SHA256.digest(content)
        if let declared = proof.declared, declared != digest {
            return Ruling(.refuse(.digestMismatch), keyID: proof.keyID)
        }
        if case .content = rule.signing, isAmbiguous(content) {
            return Self.ambiguous(proof.keyID)
        }
        var proof = proof
        if rule.challenge != .none, case .jsonPointer(let pointer) = rule.challengeSource {
            proof.challenge = pointer.string(in: content)
            if proof.challenge == nil, rule.challenge == .required {
                return Ruling(.refuse(.challengeMissing), keyID: proof.keyID)
            }
        }
        let hash = clientDataHash(head, octets, rule, digest, proof.challenge)
        return self.rule(proof, hash, rule: rule, now: now, length: head.framing)
    }

    /// Judges content that was held.
    ///
    /// - `content`: SHA-256 of the content.
    /// - `start`: at least its first ``RequestBinding/ClientDataDomain/startCount`` bytes.
    /// - `text`: the content, asked for when the rule takes the challenge out of it.
    /// - `mayVerify`: as before; others of the address may have come meanwhile.
    package mutating func close(
        _ proof: Proof,
        content: SHA256Digest,
        start: [UInt8],
        text: () -> [UInt8]?,
        rule: Rule,
        now: UnixTime,
        mayVerify: Bool = true
    ) -> Ruling {
        self.mayVerify = mayVerify
        if let declared = proof.declared, declared != content {
            return Ruling(.refuse(.digestMismatch), keyID: proof.keyID)
        }
        if let verified = proof.verified {
            return admit(verified, proof, rule: rule, now: now)
        }
        if case .content = rule.signing, isAmbiguous(start.span) {
            return Self.ambiguous(proof.keyID)
        }
        var challenge = proof.challenge
        if rule.challenge != .none, case .jsonPointer(let pointer) = rule.challengeSource {
            guard let text = text() else { return Self.unreadable(proof.keyID) }
            challenge = pointer.string(in: text.span)
            if challenge == nil, rule.challenge == .required {
                return Ruling(.refuse(.challengeMissing), keyID: proof.keyID)
            }
        }
        let hash: SHA256Digest
        switch rule.signing {
        case .content: hash = content
        case .challenge: hash = SHA256.digest(of: challenge ?? [])
        case .lines(let parts, _):
            lines.resume(behind: proof.linesBefore, parts, hasDigest: false)
            lines.digest(content.bytes.span)
            hash = SHA256.digest(lines.octets.span, proof.linesBehind.span)
        }
        let proof = Proof(
            keyID: proof.keyID,
            assertion: proof.assertion,
            challenge: challenge,
            declared: nil,
            linesBefore: [],
            linesBehind: []
        )
        return self.rule(proof, hash, rule: rule, now: now, length: .none)
    }

    private static func ambiguous(_ keyID: KeyID) -> Ruling {
        Ruling(.refuse(.clientDataAmbiguous), keyID: keyID)
    }

    /// Held content can't be read again, so what it holds can't be judged.
    private static func unreadable(_ keyID: KeyID) -> Ruling {
        Ruling(.refuse(.spillFailed), keyID: keyID)
    }

    /// The key that a request names, whatever else it lacks: for the log and the origin. The
    /// rollout goes by it only once it has signed.
    private func named(_ fields: ProofFields, _ octets: Span<UInt8>) -> KeyID? {
        guard !fields.isAmbiguous, let keyID = fields.keyID else { return nil }
        return KeyID(base64: octets.extracting(keyID))
    }

    private static func copy(_ octets: Span<UInt8>) -> [UInt8] {
        octets.withUnsafeBufferPointer { Array($0) }
    }

    /// A request without an assertion.
    private static func unproven(_ rule: Rule, _ fields: ProofFields, _ keyID: KeyID?) -> Ruling {
        guard fields.isUnsupported else { return Ruling(.refuse(.assertionMissing), keyID: keyID) }
        var ruling = Ruling(.refuse(.unsupported), keyID: keyID)
        ruling.isExcused = rule.unsupported == .forward
        return ruling
    }
}
