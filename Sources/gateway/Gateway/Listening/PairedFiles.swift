import ConfigurationReading
import EventLoops

/// A certificate and a private key that were loaded together, for messages about what is wrong with
/// their files.
struct PairedFiles {
    /// What is wrong, and what to write instead.
    struct Mistake: Equatable {
        let found: String
        let use: String

        init(_ found: String, _ use: String) { (self.found, self.use) = (found, use) }
    }

    let certificate: String
    let key: String

    /// What is wrong with a file that was loaded: the operator's mistake where it is known, or else
    /// OpenSSL's finding.
    ///
    /// - pair: `nil` for a file of authorities.
    static func mistake(_ error: TLSContextError, of pair: PairedFiles?) -> Mistake {
        if let mistake = pair?.mistake(error) { return mistake }
        let detail = error.detail.isEmpty ? "" : " (\(error.detail))"
        return Mistake(error.path.isEmpty ? error.detail : error.path + detail, error.use)
    }

    private func mistake(_ error: TLSContextError) -> Mistake? {
        switch error.reason {
        case .certificateUnreadable: exchange ?? misplacedKey
        case .keyUnreadable: exchange ?? misplacedCertificate
        case .keyMismatch:
            Mistake(
                "\(key) is not the key of the first certificate in \(certificate)",
                error.use
            )
        case .certificateWeak, .keyEncrypted, .trustUnreadable, .listUnreadable, .listMissing,
            .cipherUnsupported, .groupUnsupported, .library:
            nil
        }
    }

    private var exchange: Mistake? {
        guard misplacedKey != nil, misplacedCertificate != nil else { return nil }
        return Mistake(
            "certificate and key are exchanged: \(certificate) holds a private key, and \(key) a "
                + "certificate",
            "certificate: \(key), key: \(certificate)"
        )
    }

    private var misplacedKey: Mistake? {
        guard PEMContent(certificate, DiskFiles()).isKeyAlone else { return nil }
        return Mistake(
            "\(certificate) holds a private key and no certificate",
            "the file with the server's certificate and the intermediate ones after it"
        )
    }

    private var misplacedCertificate: Mistake? {
        guard PEMContent(key, DiskFiles()).isCertificateAlone else { return nil }
        return Mistake(
            "\(key) holds a certificate and no private key",
            "the file with the private key of \(certificate)"
        )
    }
}
