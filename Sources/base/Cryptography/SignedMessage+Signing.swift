internal import Encodings
public import Signatures

extension SignedMessage {
    /// The attributes in the signer's entry.
    public enum SignedAttributes: Sendable {
        /// Nothing, as in Apple's receipts since the end of 2020.
        case none
        /// Attributes, although the signature is over the bare content, as in Apple's receipts of
        /// August to October 2020.
        case unsigned
    }

    /// A message as Apple's receipt service makes them: BER with indefinite lengths, ECDSA with
    /// SHA-256 over the content, the signer's certificate and the others inside.
    public static func signed(
        _ content: [UInt8],
        by key: ECPrivateKey,
        signer: X509Certificate,
        others: [X509Certificate],
        attributes: SignedAttributes = .none
    ) -> [UInt8] {
        let digest = SHA256.digest(of: content)
        let bytes = digest.bytes
        var message = MessageContent(
            content,
            certificates: ([signer] + others).map(\.der),
            signer: (signer.issuer.der, DEREncoder.element(.integer, signer.serial)),
            signature: key.signature(overDigest: bytes.span)
        )
        if attributes == .unsigned {
            // RFC 5652 §11.1 to §11.3: content type, signing time, message digest.
            message.attributes = [
                (
                    OID("1.2.840.113549.1.9.3").element,
                    OID("1.2.840.113549.1.7.1").element
                ),
                (OID("1.2.840.113549.1.9.5").element, DEREncoder.time(signer.notBefore.seconds)),
                (OID("1.2.840.113549.1.9.4").element, DEREncoder.octetString(digest.array)),
            ]
        }
        return message.ber
    }
}
