internal import Encodings
public import Signatures

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
        commonName = leaf.subject(.commonName)
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
