import CryptoExtras
import Cryptography
import Encodings
import SettingsReading
import Signatures
import Tokens

// In the place of files that are absent where a configuration is only checked.
extension StandIn {
    /// The key file of a service account, with a key that was just made and that Google does not
    /// know. The same for all of a process, so that two configurations don't differ by it.
    static let serviceAccount = StandIn { _ in account }

    /// A public key on P-256, in base64.
    static let publicKey = StandIn { _ in
        Base64.encode(ClassicTokenKeys.pointPrefix + P256PrivateKey().publicKey.x963)
    }

    private static let account = makeAccount()

    private static func makeAccount() -> [UInt8]? {
        guard let key = try? _RSA.Signing.PrivateKey(keySize: .bits2048) else { return nil }
        var json = JSONWriter(.compact)
        json.object { json in
            json.member("type", "service_account")
            json.member("client_email", "assumed@assumed.invalid")
            json.member("private_key_id", "assumed")
            json.member("private_key", key.pemRepresentation)
            json.member("token_uri", "https://assumed.invalid/token")
        }
        return json.bytes
    }
}
