internal import Encodings

extension X509Certificate {
    /// The longest PEM file that is read.
    package static let pemBytesMax = 256 * 1024

    private static let pemBegin = "-----BEGIN CERTIFICATE-----"
    private static let pemEnd = "-----END CERTIFICATE-----"

    /// The certificates of a PEM text (RFC 7468), in order; other text in it is skipped. Throws
    /// `.malformed` when there is none, or more than ``pathCandidatesMax``, or one that cannot be
    /// read.
    public static func certificates(pem: String) throws(X509CertificateError) -> [X509Certificate] {
        try ders(pem: pem).map { der throws(X509CertificateError) in
            try X509Certificate(der: der)
        }
    }

    /// A certificate that the program contains, in PEM.
    package static func pinned(_ pem: String) -> X509Certificate {
        do {
            return try certificates(pem: pem)[0]
        } catch {
            preconditionFailure("X509Certificate: a pinned certificate cannot be read")
        }
    }

    /// The bytes of the certificates of a PEM text, whatever they are. See
    /// ``certificates(pem:)``.
    package static func ders(pem: String) throws(X509CertificateError) -> [[UInt8]] {
        guard pem.utf8.count <= pemBytesMax else {
            throw X509CertificateError(.malformed, "\(pem.utf8.count) bytes of PEM are too many")
        }
        var ders: [[UInt8]] = []
        // The base64 of the certificate that has begun.
        var text: String?
        for line in pem.split(whereSeparator: \.isNewline) {
            if line.hasPrefix(pemBegin) {
                guard text == nil, ders.count < pathCandidatesMax else {
                    throw X509CertificateError(.malformed, "PEM without an end, or too much of it")
                }
                text = ""
            } else if line.hasPrefix(pemEnd), let base64 = text {
                guard let der = Base64.decode(base64) else {
                    throw X509CertificateError(.malformed, "PEM that is no base64")
                }
                ders.append(der)
                text = nil
            } else {
                text?.append(contentsOf: line.filter { !$0.isWhitespace })
            }
        }
        guard text == nil, !ders.isEmpty else {
            throw X509CertificateError(.malformed, "no PEM certificate, or one without an end")
        }
        return ders
    }

    /// The certificate in PEM: lines of 64 characters (RFC 7468 §2).
    public var pem: String {
        let text = Array(Base64.encode(der))
        let lines = stride(from: 0, to: text.count, by: 64).map { start in
            String(decoding: text[start..<min(start + 64, text.count)], as: UTF8.self)
        }
        return ([Self.pemBegin] + lines + [Self.pemEnd]).joined(separator: "\n") + "\n"
    }
}
