import ConfigurationReading
import EventLoops

/// The files of a certificate and of its private key, for messages about what is wrong with them.
struct PairedFiles {
    /// What a PEM file holds, by its labels (RFC 7468 §2).
    private struct Content {
        let hasCertificate: Bool
        let hasKey: Bool

        /// The most bytes that are read: a chain and a key have a few thousand.
        private static let bytesMax = 1 << 20

        init(of path: String) {
            let bytes = try? DiskFiles().contents(of: path, limit: Self.bytesMax)
            let lines = String(decoding: bytes ?? [], as: UTF8.self).split(
                whereSeparator: \.isNewline
            )
            let labels = lines.filter { $0.hasPrefix("-----BEGIN ") }
            hasCertificate = labels.contains { $0.contains("CERTIFICATE-----") }
            hasKey = labels.contains { $0.contains("PRIVATE KEY-----") }
        }

        var isKeyAlone: Bool { hasKey && !hasCertificate }
        var isCertificateAlone: Bool { hasCertificate && !hasKey }
    }

    let certificate: String
    let key: String

    /// The mistake that caused a problem, and what to write instead; `nil` where the files are what
    /// they are named for.
    func mistake(_ reason: TLSContextError.Reason) -> (found: String, use: String)? {
        switch reason {
        case .certificateUnreadable, .keyUnreadable:
            let (first, second) = (Content(of: certificate), Content(of: key))
            if first.isKeyAlone, second.isCertificateAlone {
                return (
                    "certificate and key are exchanged: \(certificate) holds a private key, and "
                        + "\(key) a certificate",
                    "certificate: \(key), key: \(certificate)"
                )
            }
            if reason == .certificateUnreadable, first.isKeyAlone {
                return (
                    "\(certificate) holds a private key and no certificate",
                    "the file with the server's certificate and the intermediate ones after it"
                )
            }
            if reason == .keyUnreadable, second.isCertificateAlone {
                return (
                    "\(key) holds a certificate and no private key",
                    "the file with the private key of \(certificate)"
                )
            }
            return nil
        case .keyMismatch:
            return (
                "\(key) is not the key of the first certificate in \(certificate)",
                "the key that this certificate was made for, or the server's own certificate first "
                    + "in its file and the intermediate ones after it"
            )
        case .certificateWeak, .keyEncrypted, .trustUnreadable, .library: return nil
        }
    }
}
