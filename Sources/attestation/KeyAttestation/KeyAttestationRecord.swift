public import DeviceKey
internal import Encodings
public import Signatures

/// A server's record of an Android key whose attestation is verified.
///
/// A plain value: unlike ``VerifiedKeyAttestation`` it proves nothing. It can be decoded from a
/// store, and is as trustworthy as the store. The counter is 0 at first; a server that keeps
/// counters in the record replaces it with the counter of each accepted signature, in one atomic
/// step.
public struct KeyAttestationRecord: Hashable, Sendable {
    /// The key id, by which the client names the key.
    public var keyID: KeyID
    /// The key that signs requests.
    public var publicKey: P256PublicKey
    /// The package name of the app in which the key was attested.
    public var package: String
    /// The counter of the last accepted signature.
    public var counter: SignCounter
    /// The serials of the chain, the leaf's first, for ``StatusList/revoked(among:)`` when a newer
    /// list comes.
    public var serials: [CertificateSerial]
    /// SHA-256 of the key that attested this one, 32 bytes: ``VerifiedKeyAttestation/attesterID``.
    /// Empty in a record that is made without it.
    public var attesterID: [UInt8] = []

    /// A record from its parts, for servers with a store of their own. A server that counts keys by
    /// their attester sets ``attesterID`` too.
    public init(
        keyID: KeyID,
        publicKey: P256PublicKey,
        package: String,
        counter: SignCounter,
        serials: [CertificateSerial]
    ) {
        self.keyID = keyID
        self.publicKey = publicKey
        self.package = package
        self.counter = counter
        self.serials = serials
    }
}

extension VerifiedKeyAttestation {
    /// The record to store.
    public var record: KeyAttestationRecord {
        var record = KeyAttestationRecord(
            keyID: keyID,
            publicKey: publicKey,
            package: app.package,
            counter: .zero,
            serials: serials
        )
        record.attesterID = attesterID
        return record
    }
}

/// An object: key id, public key and attester id in base64, serials in hexadecimal, the counter as
/// a number.
extension KeyAttestationRecord: Codable {
    private enum Key: String, CodingKey {
        case keyID = "key_id"
        case publicKey = "public_key"
        case package
        case counter
        case serials
        case attesterID = "attester_id"
    }

    /// Reads the object.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let attester = try container.decode(String.self, forKey: .attesterID)
        guard let attesterID = Base64.decode(attester) else {
            throw DecodingError.dataCorruptedError(
                forKey: .attesterID,
                in: container,
                debugDescription: "not base64"
            )
        }
        self.attesterID = attesterID
        keyID = try container.decode(KeyID.self, forKey: .keyID)
        publicKey = try container.decode(P256PublicKey.self, forKey: .publicKey)
        package = try container.decode(String.self, forKey: .package)
        counter = try container.decode(SignCounter.self, forKey: .counter)
        serials = try container.decode([CertificateSerial].self, forKey: .serials)
    }

    /// Writes the object.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(keyID, forKey: .keyID)
        try container.encode(publicKey, forKey: .publicKey)
        try container.encode(package, forKey: .package)
        try container.encode(counter, forKey: .counter)
        try container.encode(serials, forKey: .serials)
        try container.encode(Base64.text(attesterID), forKey: .attesterID)
    }
}
