package import AppAttest
import Cryptography
import Encodings
import HTTPWire
import KeyAttestation
import KeyStore
import RequestBinding
import Rules
package import Tokens

/// The claims of a request while its content is awaited.
package struct Proof: Sendable {
    /// The evidence for them.
    enum Evidence: Sendable {
        case assertion(KeyEvidence)
        case session(SessionEvidence)
    }

    package let keyID: KeyID
    let evidence: Evidence
    /// The text in the challenge's line: the challenge, or the sequence number of a session.
    var challenge: [UInt8]?
    /// The digest that the client declares for the content, where it does.
    var declared: SHA256Digest?
    /// The line form's client data before and after the digest line; empty in the other forms.
    var linesBefore: [UInt8] = []
    var linesBehind: [UInt8] = []
    /// The key's signature, or the one that opened the session. Set where the declared digest was
    /// enough to verify the request: the content need only have that digest.
    var verified: VerifiedEvidence?
    /// SHA-256 of the client data that was verified; `nil` where nothing was.
    var signed: SHA256Digest?

    var kind: ProofKind {
        switch evidence {
        case .assertion: .assertion
        case .session: .session
        }
    }

    /// The platform whose keys sign such evidence; `nil` for a session, which every key may open.
    var platform: DevicePlatform? {
        switch evidence {
        case .assertion(let evidence): evidence.platform
        case .session: nil
        }
    }

    /// Whether an assertion's signature was verified for it. The limits of an address count these.
    /// Checking a session's code costs less than reading the request.
    package var hasCostSignature: Bool { kind == .assertion && verified != nil }

    /// What is known of the verdict while the content is awaited.
    package var provisional: Verdict {
        var verdict = verdict(.pass)
        if verified != nil { verdict.level = .signed }
        return verdict
    }

    func verdict(_ outcome: Verdict.Outcome) -> Verdict {
        Verdict(outcome, keyID: keyID, proof: kind)
    }

    /// The signed parts, where a rule asks for these parts.
    func parts(_ parts: SignedParts) -> SignedParts {
        switch evidence {
        case .assertion: parts
        case .session: parts.inSession
        }
    }
}

/// What a key has signed for a request, in the form of its platform.
enum KeyEvidence: Sendable {
    /// An assertion of App Attest.
    case apple(UnverifiedAssertion)
    /// A signature of a key in Android's keystore, with a counter that the app keeps.
    case android(UnverifiedKeySignature)

    /// Base64 characters that the largest assertion takes.
    private static let assertionTextMax = (UnverifiedAssertion.bytesMax + 2) / 3 * 4

    /// Reads the value of `App-Attest-Assertion`. No text has both forms: base64 has no full stop.
    init?(_ text: Span<UInt8>) {
        if UnverifiedKeySignature.begins(text) {
            guard let signature = UnverifiedKeySignature(text) else { return nil }
            self = .android(signature)
            return
        }
        guard text.count <= Self.assertionTextMax, let bytes = Base64.decode(text),
            let assertion = try? UnverifiedAssertion(bytes: bytes)
        else { return nil }
        self = .apple(assertion)
    }

    var platform: DevicePlatform {
        switch self {
        case .apple: .apple
        case .android: .android
        }
    }

    var counter: SignCounter {
        switch self {
        case .apple(let assertion): assertion.counter
        case .android(let signature): signature.counter
        }
    }

    /// Checks that the key has signed this client data, in this app. Throws `.signatureMismatch`,
    /// then `.appMismatch`.
    func verified(
        clientDataHash: SHA256Digest,
        key: P256PublicKey,
        app: AppPolicy
    ) throws(AssertionRefusal) -> VerifiedEvidence {
        switch self {
        case .apple(let assertion):
            return VerifiedEvidence(
                try assertion.verified(
                    clientDataHash: clientDataHash.bytes.span,
                    key: key,
                    app: app.hash
                )
            )
        case .android(let signature):
            let isValid = signature.isValid(
                clientDataHash: clientDataHash.bytes.span,
                package: app.id,
                key: key
            )
            guard isValid else {
                throw AssertionRefusal(.signatureMismatch, "not signed for \(app.id)")
            }
            // The signature covers the package. No phone signs the build of its app.
            return VerifiedEvidence(app: app.hash, counter: signature.counter)
        }
    }
}

/// The evidence of a request that is signed with a session.
struct SessionEvidence: Sendable {
    let session: Session
    let sequence: SequenceNumber
    let signature: SHA256Digest

    /// The signature that opened the session, if the request's code is right.
    func verified(_ code: SHA256Digest) -> VerifiedEvidence? {
        code.isEqual(constantTime: signature) ? session.evidence : nil
    }

    /// The fault of the sequence number or the key now; nothing is used.
    func fault(isOutdated: Bool, _ decider: Decider) -> Verdict.Outcome? {
        guard decider.admits(sequence, of: session) else { return .refuse(.sessionReplayed) }
        return isOutdated ? .failure(.store) : nil
    }

    /// Uses the sequence number. A failing store can't say only one thing: whether the key was
    /// revoked meanwhile.
    func use(isOutdated: Bool, for rule: Rule, in decider: Decider, _ verdict: inout Verdict) {
        if isOutdated, rule.onError == .refuse, decider.admits(sequence, of: session) {
            verdict.outcome = .failure(.store)
        } else if decider.use(sequence, of: session) {
            verdict.settle(isOutdated ? .unassured : .admitted)
        } else {
            verdict.outcome = .refuse(.sessionReplayed)
        }
    }
}

/// The places of the proof's fields in a head.
struct ProofFields {
    var keyID: Range<Int>?
    var assertion: Range<Int>?
    var challenge: Range<Int>?
    var isUnsupported = false
    /// One of them occurs twice: no specification says which one counts.
    var isAmbiguous = false

    /// Whether none of an assertion's fields is there.
    var isEmpty: Bool { keyID == nil && assertion == nil && challenge == nil }

    /// Checks every field once.
    init(_ section: borrowing FieldSection, _ bytes: Span<UInt8>, names: FieldNames) {
        for index in section.fields.indices {
            let field = section.fields[index]
            if Self.equal(bytes, field.name, to: names.keyID) {
                note(field.value, \.keyID)
            } else if Self.equal(bytes, field.name, to: names.assertion) {
                note(field.value, \.assertion)
            } else if Self.equal(bytes, field.name, to: names.challenge) {
                note(field.value, \.challenge)
            } else if Self.equal(bytes, field.name, to: names.unsupported) {
                isUnsupported = true
            }
        }
    }

    private mutating func note(
        _ value: Range<Int>,
        _ path: WritableKeyPath<ProofFields, Range<Int>?>
    ) {
        if self[keyPath: path] != nil { isAmbiguous = true }
        self[keyPath: path] = value
    }

    /// Names are compared without case (RFC 9110 §5.1); `name` is in lower case.
    static func equal(_ bytes: Span<UInt8>, _ range: Range<Int>, to name: [UInt8]) -> Bool {
        guard range.count == name.count else { return false }
        for index in 0..<name.count {
            let byte = bytes[range.lowerBound + index]
            let isUpper = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
            guard (isUpper ? byte | 0x20 : byte) == name[index] else { return false }
        }
        return true
    }
}

/// The key and app for which a session may be opened, proved by an admitted request.
///
/// A reference, so that it costs other requests one word.
package final class SessionGrant: Sendable {
    package let keyID: KeyID
    package let evidence: VerifiedEvidence

    init(_ keyID: KeyID, _ evidence: VerifiedEvidence) {
        self.keyID = keyID
        self.evidence = evidence
    }
}
