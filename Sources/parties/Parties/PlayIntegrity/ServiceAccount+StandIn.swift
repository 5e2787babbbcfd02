internal import CryptoExtras
internal import Encodings

extension ServiceAccount {
    /// A file with a key that was just made, which Google does not know: for a configuration that
    /// is only checked, where the account's own file is absent. `nil` where no key could be made.
    /// The same for all of a process, so that two configurations don't differ by it.
    package static let standIn = makeStandIn()

    private static func makeStandIn() -> [UInt8]? {
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
