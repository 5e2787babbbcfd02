package import AppAttest
import Cryptography
import RequestBinding
import Sessions

/// What a request claims, while its content is awaited.
package struct Proof: Sendable {
    /// What it shows for that.
    enum Evidence: Sendable {
        case assertion(UnverifiedAssertion)
        case session(SessionEvidence)
    }

    package let keyID: KeyID
    let evidence: Evidence
    /// The text in the challenge's line: the challenge, or the sequence number of a session.
    var challenge: [UInt8]?
    /// What the client declares the content to hash to, where it does.
    var declared: SHA256Digest?
    /// The line form's client data before and behind the digest line; empty in the other forms.
    var linesBefore: [UInt8] = []
    var linesBehind: [UInt8] = []
    /// The assertion, or the one that has opened the session, where the stated digest was enough to
    /// verify the request: the content need only have that digest.
    var verified: VerifiedAssertion?

    var kind: ProofKind {
        switch evidence {
        case .assertion: .assertion
        case .session: .session
        }
    }

    /// Whether an assertion's signature was verified for it, which is what the limits of an address
    /// count. The code of a session costs less than reading the request.
    package var hasCostSignature: Bool { kind == .assertion && verified != nil }

    /// What is known of the verdict while the content is awaited.
    package var provisional: Ruling {
        var ruling = ruling(.pass)
        if verified != nil { ruling.standing = .signed }
        return ruling
    }

    func ruling(_ verdict: Verdict) -> Ruling { Ruling(verdict, keyID: keyID, proof: kind) }

    /// What is signed, where a rule asks for these parts.
    func parts(_ parts: SignedParts) -> SignedParts {
        switch evidence {
        case .assertion: parts
        case .session: parts.inSession
        }
    }
}

/// What a request shows that is signed with a session.
struct SessionEvidence: Sendable {
    let session: Session
    let sequence: SequenceNumber
    let signature: SHA256Digest
}
