internal import Encodings

extension TestCertificate {
    /// What has to be known of a root to issue certificates under it.
    struct Root {
        /// The subject, a Name in DER.
        var subject: [UInt8]
        /// The SubjectPublicKeyInfo in DER.
        var publicKeyInfo: [UInt8]

        /// Reads a certificate in DER. The signature is not checked: the gateway does that.
        init(der: [UInt8]) throws(DERError) {
            let copy = ContiguousArray(der)
            let bytes = copy.span
            var outer = DERCursor(0..<bytes.count)
            var certificate = DERCursor(try outer.next(.sequence, in: bytes))
            try outer.finish()
            var fields = DERCursor(try certificate.next(.sequence, in: bytes))
            _ = try fields.next(.explicit(0), in: bytes)
            _ = try fields.next(.integer, in: bytes)
            // Signature algorithm, issuer, validity.
            for _ in 0..<3 { _ = try fields.next(.sequence, in: bytes) }
            subject = DEREncoder.element(
                .sequence,
                Array(der[try fields.next(.sequence, in: bytes)])
            )
            publicKeyInfo = DEREncoder.element(
                .sequence,
                Array(der[try fields.next(.sequence, in: bytes)])
            )
        }
    }
}
