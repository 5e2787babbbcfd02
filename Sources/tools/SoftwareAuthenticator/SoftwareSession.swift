internal import Cryptography
internal import Encodings
public import RequestBinding

/// A client's side of a session: signs requests with the secret that the gateway gave out.
public struct SoftwareSession: Sendable {
    /// The session's id, as the gateway gave it out.
    public let id: String
    /// The key of the signatures, 32 bytes.
    public let secret: [UInt8]
    /// The number of the next request; `nil` when all are used up.
    public private(set) var next: SequenceNumber? = .first

    /// A session with all its numbers unused.
    public init(id: String, secret: [UInt8]) {
        self.id = id
        self.secret = secret
    }

    /// Reads the content of the answer to `POST …/sessions`; `nil` for any other content.
    public init?(answer: [UInt8]) {
        let members: Set = ["session", "secret", "expires_in", "window"]
        guard let document = JSONDocument(answer.span, members: members),
            let id = document.string("session"),
            let secret = document.string("secret").flatMap({ Base64.decode($0) })
        else { return nil }
        self.init(id: id, secret: secret)
    }

    /// Signs a request with the next number; `nil` when all are used, or where the rule has no
    /// lines to sign.
    public mutating func proof(
        of request: SoftwareKey.Request,
        signing form: SigningForm
    ) -> SessionProof? {
        guard let number = next else { return nil }
        next = number.next
        return proof(of: request, signing: form, as: number)
    }

    /// Signs a request with a number that the caller chooses; `nil` where the rule has no lines to
    /// sign. It ignores the request's challenge.
    public func proof(
        of request: SoftwareKey.Request,
        signing form: SigningForm,
        as number: SequenceNumber
    ) -> SessionProof? {
        guard case .lines(let parts, let headers) = form else { return nil }
        let digest = SHA256.digest(of: request.content).array
        let lines = RequestLines.clientData(
            parts,
            of: request.described(headers, digest: digest),
            sequence: number
        )
        let code = HMACSHA256.code(lines.span, key: secret.span)
        return SessionProof(
            session: id,
            sequence: number.text,
            signature: Base64.text(code.array),
            contentDigest: request.content.isEmpty ? nil : "sha-256=:\(Base64.text(digest)):"
        )
    }
}

/// The fields that a client sends with a request that it has signed with a session.
public struct SessionProof: Hashable, Sendable {
    /// `App-Attest-Session`: the session's id.
    public var session: String
    /// `App-Attest-Sequence`: decimal digits.
    public var sequence: String
    /// `App-Attest-Signature`: base64 of 32 bytes.
    public var signature: String
    /// `Content-Digest`: the sha-256 member, for requests with content.
    public var contentDigest: String?
    /// `App-Attest-Key-Id`, for load balancers: the key that has opened the session. The gateway
    /// takes it where its answer said `accepts_key_id`.
    public var keyID: String?

    /// The fields, in the order above.
    public var fields: [(name: String, value: String)] {
        [
            ("App-Attest-Session", session), ("App-Attest-Sequence", sequence),
            ("App-Attest-Signature", signature), ("Content-Digest", contentDigest),
            ("App-Attest-Key-Id", keyID),
        ].compactMap { field in field.1.map { (field.0, $0) } }
    }
}
