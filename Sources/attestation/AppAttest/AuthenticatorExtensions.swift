internal import StrictCBOR

/// What iOS and macOS 27 and later sign into authenticator data: one CBOR map after the fixed part,
/// with text keys.
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
    /// Which hash that is, as Apple writes it.
    public private(set) var codeDirectoryHashType: [UInt8]?

    /// No extensions: what systems before 27 send.
    static let none = AuthenticatorExtensions()

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
        let budget = CBORBudget(octetsMax: Self.bytesMax, depthMax: 4, itemsMax: 64)
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
