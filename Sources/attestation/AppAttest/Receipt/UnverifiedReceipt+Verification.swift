public import Cryptography

extension UnverifiedReceipt {
    /// The extension that marks the certificates of Apple's "Application Attestation Fraud Receipt
    /// Signing".
    package static let signerOID = OID("1.2.840.113635.100.12.15")

    /// How old a receipt may be, for one that was just obtained.
    public struct Freshness: Sendable {
        /// The moment to compare with.
        public let now: UnixTime
        /// The most seconds between the creation of the receipt and `now`, in either direction.
        /// Apple says five minutes; the other direction allows for clocks that differ.
        public let secondsMax: Int64

        /// A receipt of the last so many seconds.
        public init(now: UnixTime, secondsMax: Int64) {
            self.now = now
            self.secondsMax = secondsMax
        }
    }

    /// Checks this receipt, in the order of Apple's "Assessing fraud risk", "Verify the receipt";
    /// the numbers below are its checks. Check 3, parsing, is done by the initialiser.
    ///
    /// - Parameters:
    ///   - appIDs: the App IDs that are accepted.
    ///   - key: the key that was attested.
    ///   - roots: the authorities that are trusted: ``AppleRoots/rootG3``, not the one of
    ///     attestations.
    ///   - freshness: check 5, or `nil` where a receipt is not new: one that was stored, or a
    ///     sample.
    /// - Returns: the proof.
    /// - Throws: the first check that fails.
    public func verified(
        appIDs: [String],
        key: P256PublicKey,
        roots: [X509Certificate],
        freshness: Freshness?
    ) throws(ReceiptRefusal) -> VerifiedReceipt {
        // Check 1: the signature, over the content itself.
        let signer: X509Certificate
        do throws(SignedMessage.Failure) {
            signer = try message.verifiedSigner()
        } catch {
            throw ReceiptRefusal(.signatureMismatch, error.reason.rawValue)
        }
        // Check 2: the chain, at the moment when the receipt was made, which the signature covers.
        // A signer's certificate lives for about 13 months. Receipts are kept for longer, so the
        // certificate may have expired since.
        do throws(X509CertificateError) {
            _ = try signer.path(
                through: message.certificates.filter { $0 !== signer },
                to: roots,
                at: fields.creationTime
            )
        } catch {
            let isTime = error.reason == .expired || error.reason == .notYetValid
            throw ReceiptRefusal(
                isTime ? .certificateExpired : .certificateUntrusted,
                error.detail
            )
        }
        // Not among Apple's checks: the certificate is one for signing receipts. The same root
        // vouches for keys of other parties, such as Apple Pay merchants, which could sign
        // anything. The certificate of every receipt's signer has this extension.
        guard signer.extensionBytes(Self.signerOID) != nil else {
            throw ReceiptRefusal(.certificateUntrusted, "the signer is none for receipts")
        }
        // Check 4.
        guard appIDs.contains(fields.appID) else {
            throw ReceiptRefusal(.appMismatch, "field 2 is no accepted App ID")
        }
        // Check 5.
        if let freshness { try check(freshness) }
        // Check 6. Field 3 is a certificate; its key is compared.
        guard fields.certificate.p256PublicKey == key else {
            throw ReceiptRefusal(.keyMismatch, "field 3 is of another key")
        }
        return VerifiedReceipt(bytes: bytes, fields: fields)
    }

    private func check(_ freshness: Freshness) throws(ReceiptRefusal) {
        let created = fields.creationTime
        guard freshness.now <= created.advanced(bySeconds: freshness.secondsMax) else {
            throw ReceiptRefusal(.tooOld, "made at \(created.iso8601)")
        }
        guard created <= freshness.now.advanced(bySeconds: freshness.secondsMax) else {
            throw ReceiptRefusal(.tooOld, "made in the future, at \(created.iso8601)")
        }
    }
}
