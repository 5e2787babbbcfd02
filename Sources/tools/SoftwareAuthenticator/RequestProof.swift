/// What a client sends with a request that it has signed.
public struct RequestProof: Hashable, Sendable {
    /// `App-Attest-Key-Id`: base64, 44 characters.
    public let keyID: String
    /// `App-Attest-Assertion`: base64.
    public let assertion: String
    /// `App-Attest-Challenge`: the challenge that was signed; `nil` when none was.
    public let challenge: String?
    /// `Content-Digest`: the sha-256 member, for requests with content.
    public let contentDigest: String?

    /// The fields by their standard names, in the order above.
    public var fields: [(name: String, value: String)] {
        [
            ("App-Attest-Key-Id", keyID), ("App-Attest-Assertion", assertion),
            ("App-Attest-Challenge", challenge), ("Content-Digest", contentDigest),
        ].compactMap { field in field.1.map { (field.0, $0) } }
    }
}
