internal import ByteCoding
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

extension AttestationRecord: Codable {
    private enum Key: String, CodingKey {
        case keyID = "key_id"
        case publicKey = "public_key"
        case appID = "app_id"
        case environment
        case counter
        case receipt
    }

    /// Reads an object: key id, public key and receipt in base64, the counter as a number.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        keyID = try container.decode(KeyID.self, forKey: .keyID)
        publicKey = try container.decode(P256PublicKey.self, forKey: .publicKey)
        appID = try container.decode(String.self, forKey: .appID)
        environment = try container.decode(AttestationEnvironment.self, forKey: .environment)
        counter = try container.decode(SignCounter.self, forKey: .counter)
        receipt = try container.decodeBase64(forKey: .receipt)
    }

    /// Writes an object: key id, public key and receipt in base64, the counter as a number.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(keyID, forKey: .keyID)
        try container.encode(publicKey, forKey: .publicKey)
        try container.encode(appID, forKey: .appID)
        try container.encode(environment, forKey: .environment)
        try container.encode(counter, forKey: .counter)
        try container.encodeBase64(receipt, forKey: .receipt)
    }
}

extension KeyedEncodingContainer {
    /// Writes bytes as base64, and nothing for `nil`.
    mutating func encodeBase64(_ bytes: [UInt8]?, forKey key: Key) throws {
        try encodeIfPresent(bytes.map { Base64.text($0) }, forKey: key)
    }
}

extension KeyedDecodingContainer {
    /// Reads bytes that must be present.
    func decodeBase64(forKey key: Key) throws -> [UInt8] {
        guard let bytes = Base64.decode(try decode(String.self, forKey: key)) else {
            throw DecodingError.dataCorruptedError(
                forKey: key,
                in: self,
                debugDescription: "not base64"
            )
        }
        return bytes
    }

    /// Reads bytes; `nil` when the member is missing or null.
    func decodeBase64IfPresent(forKey key: Key) throws -> [UInt8]? {
        guard contains(key), try !decodeNil(forKey: key) else { return nil }
        return try decodeBase64(forKey: key)
    }
}
