import AppAttest
import Cryptography
import SoftwareAuthenticator

/// The made-up device whose objects the corpora hold. Its keys come from fixed seeds, so that an
/// object that was made once verifies ever after, and nothing else does.
package enum SeedObjects {
    static let madeAt = UnixTime(seconds: 1_767_225_600)
    static let hash = SHA256.digest(of: Array("fuzz".utf8)).array
    static let appID = "ABCDE12345.test.fuzz"
    static let authority = SoftwareAuthority(seed: Array("fuzz authority".utf8), madeAt: madeAt)
    static let key = SoftwareDevice(
        authority: authority,
        appID: appID,
        environment: .production,
        shape: .iOS27(category: .operatingSystem, bundleVersion: "1")
    ).makeKey(seed: Array("fuzz key".utf8))

    /// Objects of each kind with the target that reads them.
    package static func make() -> [(target: FuzzTarget, bytes: [UInt8])] {
        var key = key
        let attestation = key.attestation(clientDataHash: hash, at: madeAt)
        return [
            (.attestation, attestation),
            (.cbor, attestation),
            (.assertion, key.assertion(clientDataHash: hash)),
            (.receipt, key.receipt(.attest, clientDataHash: hash, at: madeAt)),
            (.certificate, authority.intermediate.der),
            (.certificate, authority.root.der),
        ]
    }
}
