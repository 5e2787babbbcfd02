internal import Encodings
internal import Signatures

/// The authenticator data of an attestation: 164 fixed bytes and an optional part.
///
///          0      37   head
///         37      16   AAGUID
///         53       2   length of the credential id, 32
///         55      32   credential id, which is the key id
///         87      77   COSE key {1: 2, 3: −7, −1: 1, −2: X, −3: Y}
///        164       …   nothing, or one CBOR map of extensions
struct AttestedAuthenticatorData {
    static let fixedBytes = 164

    let bytes: [UInt8]
    let head: AuthenticatorHead
    let aaguid: [UInt8]
    let credentialID: KeyID
    let coseKey: [UInt8]
    let extensions: AuthenticatorExtensions

    init(_ bytes: [UInt8]) throws(AttestationRefusal) {
        let whole = ContiguousArray(bytes)
        let span = whole.span
        guard bytes.count >= Self.fixedBytes, let head = AuthenticatorHead(span, 0..<bytes.count)
        else {
            throw AttestationRefusal(.malformed, "authData has \(bytes.count) bytes")
        }
        // The offsets after it hold for this length alone.
        guard bytes[53] == 0, bytes[54] == 32, let id = KeyID(bytes: bytes[55..<87]) else {
            throw AttestationRefusal(.malformed, "credential id is not of 32 bytes")
        }
        self.bytes = bytes
        self.head = head
        aaguid = Array(bytes[37..<53])
        credentialID = id
        coseKey = Array(bytes[87..<164])
        guard bytes.count > Self.fixedBytes else {
            extensions = .none
            return
        }
        do throws(CBORError) {
            extensions = try AuthenticatorExtensions(span, Self.fixedBytes..<bytes.count)
        } catch {
            throw AttestationRefusal(
                .malformed,
                "authData: \(error.reason.rawValue) at \(error.offset)"
            )
        }
    }

    /// The 77 bytes that a COSE key of this point has (RFC 9053 §7.1.1, canonical order).
    static func coseKey(of key: P256PublicKey) -> [UInt8] {
        let point = key.x963
        return [0xA5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20] + point[1..<33]
            + [0x22, 0x58, 0x20] + point[33..<65]
    }
}

/// The first 37 bytes of authenticator data, in attestations and assertions alike.
///
///     offset  bytes
///          0      32   SHA-256 of the App ID
///         32       1   flags, which are not reliable and decide nothing
///         33       4   counter, big-endian
struct AuthenticatorHead {
    static let byteCount = 37

    let appIDHash: AppIDHash
    let flags: UInt8
    let counter: SignCounter

    /// Reads the head at the front of a range; `nil` when it is too short.
    init?(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        guard range.count >= Self.byteCount, range.upperBound <= bytes.count else { return nil }
        let start = range.lowerBound
        guard let hash = SHA256Digest(bytes.extracting(start..<(start + 32))) else { return nil }
        appIDHash = AppIDHash(hash)
        flags = bytes[start + 32]
        var counter: UInt32 = 0
        for index in (start + 33)..<(start + 37) { counter = counter << 8 | UInt32(bytes[index]) }
        self.counter = SignCounter(rawValue: counter)
    }
}

/// The part that iOS and macOS 27 and later add to the signed authenticator data: one CBOR map
/// after the fixed part, with text keys.
///
///     apple_validation_category_01   byte string, seen as 4 bytes little-endian
///     apple_bundle_version_01        text, CFBundleVersion
///     apple_cd_hash_hash_01          byte string, 32 bytes (seen on macOS 27)
///     apple_cd_hash_type_01          byte string, 0x02      (seen on macOS 27)
///
/// Other keys are skipped: Apple may add some. The map is read whenever bytes follow the fixed
/// part. The flags are ignored: on macOS 27 and in Apple's own sample of 2026 they do not announce
/// the map, and in assertions they announce attested credential data that is not there.
public struct AuthenticatorExtensions: Hashable, Sendable {
    /// The longest map that is read. 116 bytes have been seen.
    public static let bytesMax = 1024

    /// How the system judged the build; `nil` before 27.
    public private(set) var validationCategory: ValidationCategory?
    /// CFBundleVersion of the build; `nil` before 27.
    public private(set) var bundleVersion: String?
    /// The hash of the code directory.
    public private(set) var codeDirectoryHash: [UInt8]?
    /// The kind of that hash, as Apple writes it.
    public private(set) var codeDirectoryHashType: [UInt8]?

    /// No extensions, as systems before 27 have none.
    package static let none = AuthenticatorExtensions()

    package init(
        validationCategory: ValidationCategory? = nil,
        bundleVersion: String? = nil,
        codeDirectoryHash: [UInt8]? = nil,
        codeDirectoryHashType: [UInt8]? = nil
    ) {
        self.validationCategory = validationCategory
        self.bundleVersion = bundleVersion
        self.codeDirectoryHash = codeDirectoryHash
        self.codeDirectoryHashType = codeDirectoryHashType
    }

    private static let categoryKey = Array("apple_validation_category_01".utf8)
    private static let versionKey = Array("apple_bundle_version_01".utf8)
    private static let hashKey = Array("apple_cd_hash_hash_01".utf8)
    private static let hashTypeKey = Array("apple_cd_hash_type_01".utf8)

    /// Reads one map with nothing after it.
    init(_ bytes: Span<UInt8>, _ range: Range<Int>) throws(CBORError) {
        let budget = CBORBudget(bytesMax: Self.bytesMax, depthMax: 4, itemsMax: 64)
        var cursor = try CBORCursor(range, budget: budget)
        let count = try cursor.map(in: bytes)
        var keys: [Range<Int>] = []
        for _ in 0..<count {
            let start = cursor.offset
            let key = try cursor.text(in: bytes)
            for other in keys where bytes.equals(other, key) {
                throw CBORError(.duplicateKey, at: start)
            }
            keys.append(key)
            try readValue(of: key, &cursor, bytes)
        }
        try cursor.finish()
    }

    private mutating func readValue(
        of key: Range<Int>,
        _ cursor: inout CBORCursor,
        _ bytes: Span<UInt8>
    ) throws(CBORError) {
        if bytes.equals(key, Self.categoryKey) {
            let start = cursor.offset
            let value = try cursor.bytes(in: bytes)
            guard (1...4).contains(value.count) else { throw CBORError(.unexpectedType, at: start) }
            var number: UInt32 = 0
            for index in value.reversed() { number = number << 8 | UInt32(bytes[index]) }
            validationCategory = ValidationCategory(rawValue: number)
        } else if bytes.equals(key, Self.versionKey) {
            let text = try cursor.text(in: bytes)
            bundleVersion = String(decoding: bytes.copy(text), as: UTF8.self)
        } else if bytes.equals(key, Self.hashKey) {
            codeDirectoryHash = bytes.copy(try cursor.bytes(in: bytes))
        } else if bytes.equals(key, Self.hashTypeKey) {
            codeDirectoryHashType = bytes.copy(try cursor.bytes(in: bytes))
        } else {
            _ = try cursor.skip(in: bytes)
        }
    }
}

/// An object of the device's statements: the category as a number, hashes in base64. A missing
/// member is one that the device did not send.
extension AuthenticatorExtensions: Codable {
    private enum CodingKeys: String, CodingKey {
        case validationCategory = "validation_category"
        case bundleVersion = "bundle_version"
        case codeDirectoryHash = "code_directory_hash"
        case codeDirectoryHashType = "code_directory_hash_type"
    }
}

extension Span<UInt8> {
    /// Whether a range holds these bytes.
    func equals(_ range: Range<Int>, _ bytes: [UInt8]) -> Bool {
        guard range.count == bytes.count else { return false }
        for step in 0..<bytes.count where self[range.lowerBound + step] != bytes[step] {
            return false
        }
        return true
    }
}
