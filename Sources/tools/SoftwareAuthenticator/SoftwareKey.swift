public import AppAttest
public import Cryptography

/// An App Attest key, whose private half a Secure Enclave would hold.
///
/// A value: a copy is a clone of the key with a counter of its own, which is what an attacker would
/// have. Signing is as fast as OpenSSL signs; keys of different threads share nothing.
public struct SoftwareKey: Sendable {
    /// The device it lives on.
    public let device: SoftwareDevice
    /// Its public half.
    public let publicKey: P256PublicKey
    /// Its key id.
    public let keyID: KeyID
    /// The number of assertions it has made; settable, to be ahead of or behind a store.
    public var counter = SignCounter.zero

    let privateKey: P256PrivateKey
    /// What authenticator data begins with, and what an assertion's ends with.
    let appIDHash: [UInt8]
    let extensionMap: [UInt8]

    init(_ privateKey: P256PrivateKey, of device: SoftwareDevice) {
        self.device = device
        self.privateKey = privateKey
        publicKey = privateKey.publicKey
        keyID = KeyID(of: privateKey.publicKey)
        appIDHash = AppIDHash(appID: device.appID).bytes
        extensionMap = device.shape.extensionMap
    }

    /// Another key of the same device, for damage that needs one. The same for the same key.
    var neighbour: P256PrivateKey {
        P256PrivateKey(seed: (keyID.bytes + Array("neighbour".utf8)).span)
    }

    /// The four bytes of a counter.
    static func octets(of counter: SignCounter) -> [UInt8] {
        let number = counter.rawValue
        return [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }
}
