internal import AppAttest
internal import ByteCoding
internal import Cryptography
public import RequestBinding

extension SoftwareKey {
    /// A request to be signed, as it will stand on the wire.
    public struct Request: Sendable {
        /// The method of the request line.
        public var method: String
        /// The target of the request line, in origin-form with the query.
        public var target: String
        /// The content after transfer codings are taken off.
        public var content: [UInt8]
        /// The text of the challenge; `nil` for a rule that asks for none.
        public var challenge: String?
        /// The fields that a rule may want signed, with names in lower case.
        public var fields: [String: String]

        /// A request in which nothing but the line has to be said.
        public init(
            method: String,
            target: String,
            content: [UInt8] = [],
            challenge: String? = nil,
            fields: [String: String] = [:]
        ) {
            self.method = method
            self.target = target
            self.content = content
            self.challenge = challenge
            self.fields = fields
        }
    }

    /// Signs a request with the next assertion of this key.
    ///
    /// - Parameters:
    ///   - request: what is sent.
    ///   - form: what the rule says is signed.
    ///   - damage: what is wrong with the assertion.
    /// - Returns: the fields to send with it.
    public mutating func proof(
        of request: Request,
        signing form: SigningForm,
        damage: AssertionDamage? = nil
    ) -> RequestProof {
        let digest = SHA256.digest(of: request.content).octets
        let assertion = assertion(
            clientData: Self.clientData(of: request, form, digest),
            damage: damage
        )
        return RequestProof(
            keyID: keyID.base64,
            assertion: Base64.text(assertion),
            challenge: request.challenge,
            contentDigest: request.content.isEmpty ? nil : "sha-256=:\(Base64.text(digest)):"
        )
    }

    /// The bytes that a device signs for a request; `digest` is that of its content.
    package static func clientData(
        of request: Request,
        _ form: SigningForm,
        _ digest: [UInt8]
    ) -> [UInt8] {
        switch form {
        case .content: request.content
        case .challenge: Array((request.challenge ?? "").utf8)
        case .lines(let parts, let headers):
            RequestLines.clientData(
                parts,
                method: request.method,
                target: request.target,
                digest: digest,
                challenge: request.challenge,
                headers: headers.map { ($0, request.fields[$0]) }
            )
        }
    }
}
