package import Cryptography
package import KeyStore

/// What never changes of a stored key.
package struct KeyIdentity: Equatable, Sendable {
    package var publicKey: P256PublicKey
    package var appID: String
    package var environment: KeyEnvironment
    package var standing: KeyStanding

    package init(
        publicKey: P256PublicKey,
        appID: String,
        environment: KeyEnvironment,
        standing: KeyStanding
    ) {
        self.publicKey = publicKey
        self.appID = appID
        self.environment = environment
        self.standing = standing
    }

    /// Whether a record is of this key, whatever has become of either.
    package func isOf(_ record: KeyRecord) -> Bool {
        publicKey == record.publicKey && appID == record.appID && environment == record.environment
    }

    /// Why a record can't be of the key that is stored so; `nil` when it can.
    package func difference(from record: KeyRecord) -> String? {
        if publicKey != record.publicKey { return "the key is stored with another public key" }
        if appID != record.appID { return "the key is stored for the app \(appID)" }
        guard environment == record.environment else {
            return "the key is stored for the environment \(environment.rawValue)"
        }
        guard standing != .deleted else { return "the key was deleted, and stays so" }
        return nil
    }
}
