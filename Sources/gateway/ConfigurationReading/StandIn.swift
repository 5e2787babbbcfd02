import AppAttest
import Cryptography
import Encodings
import Parties
import Signatures
import Tokens

/// What takes the place of an absent file's content in a configuration that is only checked: a key
/// that was just made, or a text that protects nothing. No gateway is started with it.
enum StandIn {
    /// A private key on P-256, in PEM.
    case privateKey
    /// One line, another one for each path.
    case line
    /// A JSON Web Key Set.
    case keySet
    /// The key file of a service account.
    case serviceAccount
    /// A key of 32 bytes, in base64.
    case symmetricKey
    /// A public key on P-256, in base64.
    case publicKey

    func bytes(for path: String) -> [UInt8]? {
        switch self {
        case .privateKey: Array(ECPrivateKey(generating: .p256).pem.utf8)
        case .line: Array(Hex.text(SHA256.digest(of: Array(path.utf8)).array).utf8)
        case .keySet: Self.set
        case .serviceAccount: ServiceAccount.standIn
        case .symmetricKey:
            Base64.encode(SHA256.digest(of: Array(path.utf8)).array)
        case .publicKey:
            Base64.encode(ClassicTokenKeys.pointPrefix + P256PrivateKey().publicKey.x963)
        }
    }

    /// An authority that no test has.
    static var authority: X509Certificate { AppleRoots.appAttestation }

    private static var set: [UInt8] {
        let point = P256PrivateKey().publicKey.x963
        var json = JSONWriter(.compact)
        json.object { json in
            json.objects("keys", [point]) { json, point in
                json.member("kty", "EC")
                json.member("crv", "P-256")
                json.member("kid", "assumed")
                json.member("x", Base64.urlText(point[1..<33]))
                json.member("y", Base64.urlText(point[33...]))
            }
        }
        return json.bytes
    }
}
