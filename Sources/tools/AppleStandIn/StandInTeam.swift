import Cryptography

/// A team with a key, as developer.apple.com makes them.
package struct StandInTeam: Sendable {
    package let teamID: String
    package let keyID: String
    let publicKey: P256PublicKey
    /// The content of the `.p8` file.
    package let p8: String

    package init(teamID: String = "TEAM123456", keyID: String = "ABC123DEFG") {
        let key = P256PrivateKey()
        self.teamID = teamID
        self.keyID = keyID
        publicKey = key.publicKey
        p8 = key.key.pem
    }
}
