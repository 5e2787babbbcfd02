/// Why a `.p8` file is not taken.
package enum AppleKeyFault: Error, Hashable, Sendable {
    /// There is no private key in it.
    case noPrivateKey
    /// It wants a passphrase.
    case encrypted
    /// It has a key in an older form than PKCS #8.
    case notPKCS8
    /// Its key is damaged, or none on the curve P-256.
    case notP256

    /// What was found, as a problem says it.
    package var found: String {
        switch self {
        case .noPrivateKey: "a file without a private key in PEM"
        case .encrypted: "a private key with a passphrase"
        case .notPKCS8: "a private key that is not in PKCS #8"
        case .notP256: "a private key that is damaged, or not an EC key on P-256"
        }
    }

    /// What to do.
    package var use: String {
        switch self {
        case .noPrivateKey, .notP256: "the .p8 file as it was downloaded from developer.apple.com"
        case .encrypted: "a key without passphrase (openssl pkcs8 -in KEY -out PLAIN)"
        case .notPKCS8: "PKCS #8 (openssl pkcs8 -topk8 -nocrypt -in KEY -out FILE.p8)"
        }
    }
}
