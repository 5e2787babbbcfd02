import AppAttest
import Cryptography
import Encodings
import HTTPWire
import KeyStore
import RequestBinding
import Rules
import Tokens

/// Reads a request's proof.
struct ProofReader {
    let decider: Decider

    /// The result of reading the fields of the proof.
    enum Reading {
        case unproven(Verdict)
        case claimed(Proof)
    }

    /// Reads an assertion or a session's signature, and its further fields.
    ///
    /// - isCut: whether the request has content that did not come. A preflight has none.
    func read(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        rule: Rule,
        now: UnixTime,
        isCut: Bool
    ) -> Reading {
        let fields = ProofFields(head.fields, bytes, names: rule.fields)
        if rule.preflight == .forward, !isCut, fields.isEmpty, !fields.isUnsupported,
            head.isPreflight(bytes)
        {
            return .unproven(.preflight)
        }
        // Without a proof that signs, the rule asks for a token, which is read later.
        guard rule.accept.takesAssertions else { return .unproven(Verdict(.refuse(.proofMissing))) }
        guard head.fields.kinds.isDisjoint(with: .session) else {
            return readSession(head, bytes, fields: fields, rule: rule, now: now)
        }
        guard let keyText = fields.keyID, let assertionText = fields.assertion else {
            return .unproven(Self.unproven(rule, fields, keyID: named(fields, bytes)))
        }
        // Where the challenge is part of the content, a copy in the head is ignored.
        let isInHead = rule.challenge != .none && rule.challengeSource == .field
        let challenge = isInHead ? fields.challenge : nil
        func refused(_ refusal: Refusal) -> Reading {
            let keyID = named(fields, bytes)
            return .unproven(Verdict(.refuse(refusal), keyID: keyID, proof: .assertion))
        }
        if isInHead, rule.challenge == .required, challenge == nil {
            return refused(.challengeMissing)
        }
        guard !fields.isAmbiguous, let keyID = KeyID(base64: bytes.extracting(keyText)),
            let evidence = KeyEvidence(bytes.extracting(assertionText))
        else { return refused(.assertionMalformed) }
        return .claimed(
            Proof(
                keyID: keyID,
                evidence: .assertion(evidence),
                challenge: challenge.map { Self.copy(bytes.extracting($0)) }
            )
        )
    }

    /// Reads the fields of a session: each once, and nothing of an assertion beside them, since no
    /// specification says which of two proofs counts. The key id may be there, for balancers. If it
    /// does not name the key that opened the session, the request is refused.
    private func readSession(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        fields: ProofFields,
        rule: Rule,
        now: UnixTime
    ) -> Reading {
        func refused(_ refusal: Refusal, _ keyID: KeyID? = nil) -> Reading {
            .unproven(Verdict(.refuse(refusal), keyID: keyID, proof: .session))
        }
        let isAlone = fields.assertion == nil && fields.challenge == nil
        // A session's fields have fixed names, and so has the key id beside them.
        guard isAlone, fields.keyID == nil || rule.fields.keyID == FieldNames.standard.keyID else {
            return refused(.assertionMalformed, named(fields, bytes))
        }
        var owner: KeyID?
        if head.fields.kinds.contains(.appAttestKeyID) {
            owner = head.fields.only(.appAttestKeyID).flatMap {
                KeyID(base64: bytes.extracting($0.value))
            }
            guard owner != nil else { return refused(.assertionMalformed) }
        }
        guard let id = head.fields.only(.appAttestSession),
            let number = head.fields.only(.appAttestSequence),
            let code = head.fields.only(.appAttestSignature),
            let sequence = SequenceNumber(text: bytes.extracting(number.value)),
            let signature = Self.signature(bytes.extracting(code.value))
        else { return refused(.assertionMalformed) }
        guard rule.accept.takesSessions else { return refused(.sessionRefused) }
        switch decider.findSession(bytes.extracting(id.value), now: now.seconds) {
        case .unknown(let absence):
            var verdict = Verdict(.refuse(.sessionUnknown), keyID: owner, proof: .session)
            verdict.sessionAbsence = absence
            return .unproven(verdict)
        case .expired: return refused(.sessionExpired, owner)
        case .live(let session):
            guard owner == nil || owner == session.keyID else {
                return refused(.sessionMismatch, owner)
            }
            return .claimed(
                Proof(
                    keyID: session.keyID,
                    evidence: .session(
                        SessionEvidence(session: session, sequence: sequence, signature: signature)
                    ),
                    challenge: Self.copy(bytes.extracting(number.value))
                )
            )
        }
    }

    /// 32 bytes in 44 characters of base64; missing padding is read too.
    private static func signature(_ text: Span<UInt8>) -> SHA256Digest? {
        guard text.count <= 44, let bytes = Base64.decode(text) else { return nil }
        return SHA256Digest(bytes.span)
    }

    /// The key that a request names, even if other fields are missing: for the log and the origin.
    /// The rollout uses it only if it has signed the request.
    private func named(_ fields: ProofFields, _ bytes: Span<UInt8>) -> KeyID? {
        guard !fields.isAmbiguous, let keyID = fields.keyID else { return nil }
        return KeyID(base64: bytes.extracting(keyID))
    }

    private static func copy(_ bytes: Span<UInt8>) -> [UInt8] {
        bytes.withUnsafeBufferPointer { Array($0) }
    }

    /// A request without an assertion.
    private static func unproven(_ rule: Rule, _ fields: ProofFields, keyID: KeyID?) -> Verdict {
        guard fields.isUnsupported else { return Verdict(.refuse(.assertionMissing), keyID: keyID) }
        var verdict = Verdict(.refuse(.unsupported), keyID: keyID)
        verdict.isExcused = rule.unsupported == .forward
        return verdict
    }
}
