package import Cryptography

/// The credential by which a team proves its identity to Apple: a key that was made at
/// developer.apple.com, with DeviceCheck enabled.
package struct AppleCredential: Hashable, Sendable {
    /// The team's id, `iss` of the tokens.
    package let teamID: String
    /// The key's id, `kid` of the tokens.
    package let keyID: String
    let key: P256PrivateKey

    package init(teamID: String, keyID: String, key: P256PrivateKey) {
        self.teamID = teamID
        self.keyID = keyID
        self.key = key
    }

    /// Reads the private key of a `.p8` file: PKCS #8 in PEM, not encrypted, an EC key on P-256.
    package init(teamID: String, keyID: String, pem: String) throws(AppleKeyFault) {
        func has(_ label: String) -> Bool { pem.contains("-----BEGIN \(label)-----") }
        if has("ENCRYPTED PRIVATE KEY") { throw .encrypted }
        if has("EC PRIVATE KEY") || has("RSA PRIVATE KEY") { throw .notPKCS8 }
        guard has("PRIVATE KEY") else { throw .noPrivateKey }
        guard let key = ECPrivateKey(pem: pem).flatMap({ P256PrivateKey($0) }) else {
            throw .notP256
        }
        self.init(teamID: teamID, keyID: keyID, key: key)
    }

    /// The longest file that is read. Apple's have 257 bytes.
    package static let fileBytesMax = 16 * 1024

    /// Whether a text is a team's or a key's id: ten capital letters and digits.
    package static func isID(_ text: String) -> Bool {
        text.utf8.count == 10
            && text.utf8.allSatisfy {
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            }
    }

    /// Whether both make the same tokens.
    package static func == (left: Self, right: Self) -> Bool {
        left.teamID == right.teamID && left.keyID == right.keyID
            && left.key.publicKey == right.key.publicKey
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(teamID)
        hasher.combine(keyID)
    }
}

/// Why a `.p8` file is not accepted.
package enum AppleKeyFault: Error, Hashable, Sendable {
    case noPrivateKey
    /// It needs a passphrase.
    case encrypted
    /// Its key has an older form than PKCS #8.
    case notPKCS8
    /// Its key is damaged, or not on the curve P-256.
    case notP256

    /// The finding, in the words of a problem.
    package var found: String {
        switch self {
        case .noPrivateKey: "a file without a private key in PEM"
        case .encrypted: "a private key with a passphrase"
        case .notPKCS8: "a private key that is not in PKCS #8"
        case .notP256: "a private key that is damaged, or not an EC key on P-256"
        }
    }

    /// The next step.
    package var use: String {
        switch self {
        case .noPrivateKey, .notP256: "the .p8 file as it was downloaded from developer.apple.com"
        case .encrypted: "a key without passphrase (openssl pkcs8 -in KEY -out PLAIN)"
        case .notPKCS8: "PKCS #8 (openssl pkcs8 -topk8 -nocrypt -in KEY -out FILE.p8)"
        }
    }
}
