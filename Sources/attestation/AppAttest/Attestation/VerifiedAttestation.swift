public import DeviceKey
internal import Encodings
public import Signatures

/// The proof that an attestation passed every step. Only `UnverifiedAttestation.verified(…)` makes
/// one.
///
/// Store its ``record``. The object itself is no longer needed: its certificates expire within
/// days.
public struct VerifiedAttestation: Sendable {
    /// The key that signs assertions.
    public let publicKey: P256PublicKey
    /// Its key id.
    public let keyID: KeyID
    /// The accepted app to which it belongs.
    public let app: ExpectedApp
    /// The environment in which it was attested.
    public let environment: AttestationEnvironment
    /// The receipt, which is verified separately.
    public let receipt: [UInt8]
    /// The statements of systems 27 and later about the build.
    public let extensions: AuthenticatorExtensions
    /// The certificate's statements about the device.
    public let details: LeafDetails
    /// The given root that vouches for it.
    public let root: X509Certificate
    /// The flags byte, for logs.
    public let flags: UInt8

    /// The counter to store: the next one must be greater.
    public var counter: SignCounter { .zero }
}

extension VerifiedAttestation: AttestedKey {
    /// Apple's App Attest.
    public static var platform: DevicePlatform { .apple }

    /// The counter of an attestation: 0.
    public var initialCounter: SignCounter? { counter }
}

/// A proof can be written and not read: decoded bytes would prove nothing.
/// ``AttestationRecord`` is what a server stores and reads back.
extension VerifiedAttestation: Encodable {
    private enum Key: String, CodingKey {
        case extensions
        case details
        case root
    }

    /// Writes the members of ``AttestationRecord`` and the statements of the device and its
    /// certificate.
    public func encode(to encoder: any Encoder) throws {
        try record.encode(to: encoder)
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(extensions, forKey: .extensions)
        try container.encode(details, forKey: .details)
        try container.encode(root, forKey: .root)
    }
}

extension VerifiedAttestation {
    /// The record to store.
    public var record: AttestationRecord {
        var record = AttestationRecord(
            keyID: keyID,
            publicKey: publicKey,
            appID: app.id,
            environment: environment,
            counter: counter
        )
        record.receipt = receipt
        return record
    }
}

/// Apple's statements about a device and an app in the certificate of a key.
///
/// For logs. Only ``platform`` and ``osVersion`` have a consequence: they decide whether the access
/// control list is compared. The extensions are undocumented, and certificates of old systems have
/// few of them.
public struct LeafDetails: Hashable, Sendable {
    /// CN of the subject: the key id in hexadecimal.
    public let commonName: String?
    /// The first moment of validity, about a day before the attestation.
    public let notBefore: UnixTime
    /// The last second of validity.
    public let notAfter: UnixTime
    /// The version of the operating system, such as "27.0.1".
    public let osVersion: String?
    /// The build of the operating system, such as "24A446".
    public let osBuild: String?
    /// "iphoneos" or "macosx", from about 2026 on.
    public let platform: String?
    /// "Internal" or "Beta", on some.
    public let track: String?
    /// The App ID in the certificate.
    public let appID: String?
    /// The access control list of the key, undecoded, from iOS and macOS 26 on.
    public let accessControl: [UInt8]?

    /// The kind of device that the certificate shows.
    enum Device { case mac, other, unsaid }

    /// The first version of macOS whose devices attest keys.
    private static let macOSMin = 27

    /// The certificate's statement about the device. Certificates of systems before iOS 18 name no
    /// platform; no Mac of that time has attested a key.
    var device: Device {
        if let platform { return platform == "macosx" ? .mac : .other }
        guard let version = osVersion.flatMap({ Int($0.prefix { $0 != "." }) }) else {
            return .unsaid
        }
        return version < Self.macOSMin ? .other : .unsaid
    }

    /// The extension with the nonce.
    package static let nonceOID = OID("1.2.840.113635.100.8.2")
    /// The extension with the App ID.
    package static let appOID = OID("1.2.840.113635.100.8.5")
    /// The extension with the access control list of the key.
    package static let accessControlOID = OID("1.2.840.113635.100.8.6")
    /// The extension with the operating system and the platform.
    package static let systemOID = OID("1.2.840.113635.100.8.7")

    init(_ leaf: X509Certificate) {
        commonName = leaf.subject[.commonName]
        notBefore = leaf.notBefore
        notAfter = leaf.notAfter
        let system = Self.texts(leaf.extensionBytes(Self.systemOID))
        osVersion = system[1400]
        osBuild = system[1403]
        platform = system[1026]
        track = system[1029]
        appID = Self.texts(leaf.extensionBytes(Self.appOID))[1204]
        accessControl = leaf.extensionBytes(Self.accessControlOID)
            .flatMap { Self.soleBytes($0, tag: 3) }
    }

    /// The content of `SEQUENCE { [tag] EXPLICIT OCTET STRING }` with no other element; `nil` for
    /// any other form.
    static func soleBytes(_ der: [UInt8], tag: UInt32) -> [UInt8]? {
        let whole = ContiguousArray(der)
        let bytes = whole.span
        do throws(DERError) {
            var outer = DERCursor(0..<bytes.count)
            var sequence = DERCursor(try outer.next(.sequence, in: bytes))
            try outer.finish()
            var inner = DERCursor(try sequence.next(.explicit(tag), in: bytes))
            try sequence.finish()
            let content = try inner.next(.octetString, in: bytes)
            try inner.finish()
            return bytes.copy(content)
        } catch {
            return nil
        }
    }

    /// The texts of `SEQUENCE { [n] EXPLICIT OCTET STRING, … }` by tag. Other elements are skipped.
    /// Bytes that are no such sequence give no texts: undocumented contents are no reason to
    /// refuse.
    private static func texts(_ der: [UInt8]?) -> [UInt32: String] {
        guard let der else { return [:] }
        let whole = ContiguousArray(der)
        let bytes = whole.span
        var texts: [UInt32: String] = [:]
        do throws(DERError) {
            var outer = DERCursor(0..<bytes.count)
            var sequence = DERCursor(try outer.next(.sequence, in: bytes))
            while !sequence.isAtEnd {
                let element = try sequence.next(in: bytes)
                guard element.tag == .explicit(element.tag.number) else { continue }
                var inner = DERCursor(element.content)
                let value = try inner.next(in: bytes)
                guard value.tag == .octetString else { continue }
                texts[element.tag.number] = String(
                    decoding: bytes.copy(value.content),
                    as: UTF8.self
                )
            }
        } catch {
            return texts
        }
        return texts
    }
}

/// An object of the certificate's statements: times in ISO 8601, bytes in base64. A missing member
/// is one that the certificate lacked.
extension LeafDetails: Codable {
    private enum CodingKeys: String, CodingKey {
        case commonName = "common_name"
        case notBefore = "not_before"
        case notAfter = "not_after"
        case osVersion = "os_version"
        case osBuild = "os_build"
        case platform
        case track
        case appID = "app_id"
        case accessControl = "access_control"
    }
}

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
    /// The receipt, which is verified separately and sent to Apple for a newer one. Empty in a
    /// record that is made without it.
    public var receipt: [UInt8] = []

    /// A record from its parts, for servers with a store of their own. A server that keeps receipts
    /// sets ``receipt`` too.
    public init(
        keyID: KeyID,
        publicKey: P256PublicKey,
        appID: String,
        environment: AttestationEnvironment,
        counter: SignCounter
    ) {
        self.keyID = keyID
        self.publicKey = publicKey
        self.appID = appID
        self.environment = environment
        self.counter = counter
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
