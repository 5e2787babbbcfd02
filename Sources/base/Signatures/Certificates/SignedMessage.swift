internal import Encodings

/// A CMS SignedData (RFC 5652) with its content, read and not judged.
///
/// BER is read as well as DER: Apple's receipts have indefinite lengths and their content in
/// constructed OCTET STRINGs of 1000 bytes.
public struct SignedMessage: Sendable {
    /// Why a message is refused.
    public struct Failure: Error, Sendable, Equatable {
        /// What is wrong, for code.
        @nonexhaustive
        public enum Reason: String, Sendable, CaseIterable {
            /// Not one SignedData with content and one signer, or beyond a limit.
            case malformed
            /// The signer's certificate is not in the message.
            case signerMissing
            /// Another algorithm than ECDSA with SHA-256.
            case algorithm
            /// The signature is not one of the signer over the content.
            case signature
        }

        /// What is wrong, for code.
        public let reason: Reason

        init(_ reason: Reason) { self.reason = reason }
    }

    /// The longest message that is read. Apple's receipts have 3…4 KiB.
    public static let bytesMax = 64 * 1024
    /// The most certificates in a message. Apple's receipts have three.
    public static let certificatesMax = 8

    /// The bytes that are signed.
    public let content: [UInt8]
    /// All certificates of the message, in its order.
    public let certificates: [X509Certificate]
    /// The signature of the only signer, DER.
    public let signature: [UInt8]
    /// The certificate that the signer's entry names; `nil` when the message has no such
    /// certificate.
    public let signer: X509Certificate?
    /// Whether the algorithms are ECDSA with SHA-256.
    let isECDSAWithSHA256: Bool

    /// Reads one message with nothing after it. Throws `.malformed`.
    public init(ber bytes: Span<UInt8>) throws(Failure) {
        guard bytes.count <= Self.bytesMax else { throw Failure(.malformed) }
        let parts: MessageParts
        do throws(DERError) {
            let definite = try BER.definite(bytes)
            parts = try MessageParts(ContiguousArray(definite).span)
        } catch {
            throw Failure(.malformed)
        }
        do throws(X509CertificateError) {
            certificates = try parts.certificates.map { der throws(X509CertificateError) in
                try X509Certificate(der: der)
            }
        } catch {
            throw Failure(.malformed)
        }
        (content, signature) = (parts.content, parts.signature)
        signer = certificates.first { parts.signer.isName(of: $0) }
        isECDSAWithSHA256 = parts.isECDSAWithSHA256
    }

    /// Checks that the signature is the signer's, over the content itself, and returns the signer.
    ///
    /// RFC 5652 §5.4 hashes the signed attributes where there are any. Apple does not: receipts of
    /// August to October 2020 carry signed attributes and yet are signed over the bare content
    /// (later ones carry none), which is why `openssl cms -verify` refuses them. Attributes are
    /// therefore not looked at, and nothing in them is believed.
    ///
    /// Who the signer is says nothing until ``X509Certificate/path(through:to:at:)`` leads to an
    /// anchor.
    ///
    /// Throws `.signerMissing`, `.algorithm`, `.signature`, in this order.
    public func verifiedSigner() throws(Failure) -> X509Certificate {
        guard let signer else { throw Failure(.signerMissing) }
        let digest = SHA256.digest(of: content)
        guard isECDSAWithSHA256,
            let isValid = signer.isValidSignature(signature, digest: digest)
        else { throw Failure(.algorithm) }
        guard isValid else { throw Failure(.signature) }
        return signer
    }
}
