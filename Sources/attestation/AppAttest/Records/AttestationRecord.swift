internal import Encodings
public import Signatures

/// A server's record of a key whose attestation is verified.
///
/// A plain value: unlike ``VerifiedAttestation`` it proves nothing. It can be decoded from a store,
/// and is as trustworthy as the store. The counter is 0 at first; a server that keeps counters in
/// the record replaces it with the counter of each accepted assertion, in one atomic step.
public struct AttestationRecord: Hashable, Sendable {
    /// The key id, by which the client names the key.
    public var keyID: KeyID
    /// The key that signs assertions.
    public var publicKey: P256PublicKey
    /// The App ID of the app in which the key was attested.
    public var appID: String
    /// The environment in which the key was attested.
    public var environment: AttestationEnvironment
    /// The counter of the last accepted assertion.
    public var counter: SignCounter
    /// The receipt, which is verified separately and sent to Apple for a newer one.
    public var receipt: [UInt8]

    /// A record from its parts, for servers with a store of their own.
    public init(
        keyID: KeyID,
        publicKey: P256PublicKey,
        appID: String,
        environment: AttestationEnvironment,
        counter: SignCounter,
        receipt: [UInt8]
    ) {
        self.keyID = keyID
        self.publicKey = publicKey
        self.appID = appID
        self.environment = environment
        self.counter = counter
        self.receipt = receipt
    }
}

extension VerifiedAttestation {
    /// The record to store.
    public var record: AttestationRecord {
        AttestationRecord(
            keyID: keyID,
            publicKey: publicKey,
            appID: app.id,
            environment: environment,
            counter: counter,
            receipt: receipt
        )
    }
}

/// An object: key id, public key and receipt in base64, the counter as a number.
extension AttestationRecord: Codable {
    private enum CodingKeys: String, CodingKey {
        case keyID = "key_id"
        case publicKey = "public_key"
        case appID = "app_id"
        case environment
        case counter
        case receipt
    }
}

// Bytes are base64. The conformances that the compiler writes in this module call these functions.
extension KeyedEncodingContainer {
    mutating func encode(_ bytes: [UInt8], forKey key: Key) throws {
        try encode(Base64.text(bytes), forKey: key)
    }

    mutating func encodeIfPresent(_ bytes: [UInt8]?, forKey key: Key) throws {
        try encodeIfPresent(bytes.map { Base64.text($0) }, forKey: key)
    }
}

extension KeyedDecodingContainer {
    func decode(_ type: [UInt8].Type, forKey key: Key) throws -> [UInt8] {
        guard let bytes = Base64.decode(try decode(String.self, forKey: key)) else {
            throw DecodingError.dataCorruptedError(
                forKey: key,
                in: self,
                debugDescription: "not base64"
            )
        }
        return bytes
    }

    func decodeIfPresent(_ type: [UInt8].Type, forKey key: Key) throws -> [UInt8]? {
        guard contains(key), try !decodeNil(forKey: key) else { return nil }
        return try decode(type, forKey: key)
    }
}
