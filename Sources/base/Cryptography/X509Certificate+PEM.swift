internal import COpenSSL

extension X509Certificate {
    /// The longest PEM file that is read.
    package static let pemOctetsMax = 256 * 1024

    /// The certificates of a PEM text, in order. Throws `.malformed` when there is none, or more
    /// than ``pathCandidatesMax``, or one that cannot be read.
    public static func certificates(pem: String) throws(X509CertificateError) -> [X509Certificate] {
        var text = Array(pem.utf8)
        guard text.count <= pemOctetsMax else {
            throw X509CertificateError(.malformed, "\(text.count) bytes of PEM are too many")
        }
        let pointers = text.withUnsafeMutableBytes { buffer -> [OpaquePointer] in
            guard let bio = BIO_new_mem_buf(buffer.baseAddress, Int32(buffer.count)) else {
                return []
            }
            defer { BIO_free(bio) }
            var pointers: [OpaquePointer] = []
            while let pointer = PEM_read_bio_X509(bio, nil, nil, nil) { pointers.append(pointer) }
            return pointers
        }
        // The reader ends with "no start line", which is in the queue whether or not it is an
        // error.
        ERR_clear_error()
        var certificates: [X509Certificate] = []
        var failure: X509CertificateError?
        for pointer in pointers {
            do throws(X509CertificateError) {
                certificates.append(try X509Certificate(owning: pointer))
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        let begins = pem.split(separator: "\n").count {
            $0.hasPrefix("-----BEGIN CERTIFICATE-----")
        }
        guard !certificates.isEmpty, certificates.count == begins,
            certificates.count <= pathCandidatesMax
        else {
            throw X509CertificateError(
                .malformed,
                "\(certificates.count) of \(begins) PEM certificates"
            )
        }
        return certificates
    }

    /// The certificate in PEM.
    public var pem: String {
        PEM.text { PEM_write_bio_X509($0, pointer) == 1 }
    }
}
