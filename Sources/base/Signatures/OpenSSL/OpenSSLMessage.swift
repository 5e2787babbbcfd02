#if Gateway && os(Linux)
    internal import COpenSSL

    /// A CMS SignedData as OpenSSL reads it, in the gateway.
    enum OpenSSLMessage: MessageReading {
        static func parts(ber bytes: Span<UInt8>) -> SignedMessage.Parts? {
            defer { ERR_clear_error() }
            let message = bytes.withUnsafeBufferPointer { buffer -> OpaquePointer? in
                var next = buffer.baseAddress
                // d2i reads at most `count` bytes from `next`, and moves it after the bytes that it
                // read.
                guard let message = d2i_CMS_ContentInfo(nil, &next, buffer.count) else {
                    return nil
                }
                guard let base = buffer.baseAddress, next == base + buffer.count else {
                    CMS_ContentInfo_free(message)
                    return nil
                }
                return message
            }
            guard let message else { return nil }
            defer { CMS_ContentInfo_free(message) }

            guard OBJ_obj2nid(CMS_get0_type(message)) == NID_pkcs7_signed,
                OBJ_obj2nid(CMS_get0_eContentType(message)) == NID_pkcs7_data,
                let content = CMS_get0_content(message)?.pointee,
                let signers = CMS_get0_SignerInfos(message), copenssl_signer_count(signers) == 1,
                let info = copenssl_signer_get(signers, 0),
                let signature = CMS_SignerInfo_get0_signature(info),
                let (certificates, signer) = certificates(of: message, signedBy: info)
            else { return nil }
            var digestAlgorithm: UnsafeMutablePointer<X509_ALGOR>?
            var signatureAlgorithm: UnsafeMutablePointer<X509_ALGOR>?
            CMS_SignerInfo_get0_algs(info, nil, nil, &digestAlgorithm, &signatureAlgorithm)
            return SignedMessage.Parts(
                content: Self.bytes(of: content),
                signature: Self.bytes(of: signature),
                certificates: certificates,
                signer: signer,
                isECDSAWithSHA256: nid(digestAlgorithm) == NID_sha256
                    && nid(signatureAlgorithm) == NID_ecdsa_with_SHA256
            )
        }

        private static func certificates(
            of message: OpaquePointer,
            signedBy info: OpaquePointer
        ) -> ([[UInt8]], signer: Int?)? {
            guard let stack = CMS_get1_certs(message) else { return nil }
            defer { copenssl_x509_stack_pop_free(stack) }
            let count = copenssl_x509_stack_count(stack)
            guard count <= SignedMessage.certificatesMax else { return nil }
            var certificates: [[UInt8]] = []
            var signer: Int?
            for index in 0..<count {
                guard let pointer = copenssl_x509_stack_get(stack, index),
                    let der = der(of: pointer)
                else { return nil }
                if signer == nil, CMS_SignerInfo_cert_cmp(info, pointer) == 0 {
                    signer = Int(index)
                }
                certificates.append(der)
            }
            return (certificates, signer)
        }

        private static func der(of certificate: OpaquePointer) -> [UInt8]? {
            var start: UnsafeMutablePointer<UInt8>?
            let count = i2d_X509(certificate, &start)
            guard count >= 0, let start else { return nil }
            // OpenSSL allocated `count` bytes at `start` for us to free.
            defer { CRYPTO_free(start, nil, 0) }
            return Array(UnsafeBufferPointer(start: start, count: Int(count)))
        }

        private static func bytes(of string: UnsafePointer<ASN1_OCTET_STRING>) -> [UInt8] {
            // The string belongs to the message, which is alive; its bytes are copied.
            Array(
                UnsafeBufferPointer(
                    start: ASN1_STRING_get0_data(string),
                    count: Int(ASN1_STRING_length(string))
                )
            )
        }

        private static func bytes(of string: UnsafeMutablePointer<ASN1_OCTET_STRING>) -> [UInt8] {
            bytes(of: UnsafePointer(string))
        }

        private static func nid(_ algorithm: UnsafeMutablePointer<X509_ALGOR>?) -> Int32 {
            var object: OpaquePointer?
            X509_ALGOR_get0(&object, nil, nil, algorithm)
            return OBJ_obj2nid(object)
        }
    }
#endif
