internal import AppAttest
internal import ByteCoding
internal import Cryptography
internal import JSONText

extension SoftwareKey {
    /// The environment that an imported key is said to have.
    public enum ImportEnvironment: String, Hashable, Sendable, CaseIterable {
        /// Attested in Apple's production service.
        case production
        /// Attested in Apple's development service.
        case development
        /// Attested by an authority that an app entry's `test_root` trusts.
        case test
    }

    /// This key as a line of `keys import`, without the line feed:
    ///
    ///     {"key_id": …, "app_id": …, "environment": …, "public_key": …, "counter": …}
    ///
    /// `public_key` is base64 of the X9.62 point of 65 bytes, `counter` is the last one.
    public func importLine(as environment: ImportEnvironment) -> String {
        var json = JSONWriter()
        json.object { json in
            json.member("key_id", keyID.base64)
            json.member("app_id", device.appID)
            json.member("environment", environment.rawValue)
            json.member("public_key", Base64.text(publicKey.x963))
            json.member("counter", counter.rawValue)
        }
        return json.text
    }
}
