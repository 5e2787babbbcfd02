package import Encodings
internal import Signatures

/// What a keystore says of a key and of the phone it lives in: the extension of the leaf.
///
///     SEQUENCE {
///       INTEGER attestationVersion, ENUMERATED attestationSecurityLevel,
///       INTEGER keyMintVersion, ENUMERATED keyMintSecurityLevel,
///       OCTET STRING attestationChallenge, OCTET STRING uniqueId,
///       softwareEnforced, hardwareEnforced }
///
/// [KeyMint], the same eight fields in all versions: 1 to 4 of Keymaster 2 to 4.1, and 100 to 500
/// of KeyMint 1 to 5. The chip decides the version and not the system, so a phone may have two.
public struct KeyDescription: Hashable, Sendable {
    /// The longest extension that is read. 150…1,200 bytes have been seen.
    public static let bytesMax = 8 * 1024

    /// The version of this description.
    public let attestationVersion: Int64
    /// What made this description.
    public let attestationLevel: SecurityLevel
    /// The version of the keystore: 41 for Keymaster 4.1.
    public let keyMintVersion: Int64
    /// Where the key lives.
    public let keyMintLevel: SecurityLevel
    /// The challenge that was given when the key was made.
    public let challenge: [UInt8]
    /// What the system says. The app is named here; nothing else of it counts.
    public let softwareEnforced: AuthorizationList
    /// What the hardware says.
    public let hardwareEnforced: AuthorizationList

    static let oid = OID("1.3.6.1.4.1.11129.2.1.17")

    /// Reads the value of the extension, with nothing after it.
    package init(_ bytes: [UInt8]) throws(DERError) {
        guard bytes.count <= Self.bytesMax else { throw DERError(.tooMany, at: bytes.count) }
        let whole = ContiguousArray(bytes)
        let der = whole.span
        var outer = DERCursor(0..<der.count)
        var fields = DERCursor(try outer.next(.sequence, in: der))
        try outer.finish()
        attestationVersion = try fields.integer(.integer, in: der)
        attestationLevel = try fields.word(of: SecurityLevel.self, .enumerated, in: der)
        keyMintVersion = try fields.integer(.integer, in: der)
        keyMintLevel = try fields.word(of: SecurityLevel.self, .enumerated, in: der)
        challenge = der.copy(try fields.next(.octetString, in: der))
        _ = try fields.next(.octetString, in: der)
        softwareEnforced = try AuthorizationList(try fields.next(.sequence, in: der), in: der)
        hardwareEnforced = try AuthorizationList(try fields.next(.sequence, in: der), in: der)
        try fields.finish()
    }
}

/// Where a key lives, or what made a description.
///
/// May grow: a `switch` over it has an `@unknown default`.
@nonexhaustive(warn)
public enum SecurityLevel: Int64, CaseIterable, Sendable {
    /// The system itself.
    case software = 0
    /// A trusted environment of the main processor (TEE).
    case trustedEnvironment = 1
    /// A chip of its own.
    case strongBox = 2
}

/// Where a key comes from.
///
/// May grow: a `switch` over it has an `@unknown default`.
@nonexhaustive(warn)
public enum KeyOrigin: Int64, CaseIterable, Sendable {
    /// Made where it lives.
    case generated = 0
    /// Derived where it lives.
    case derived = 1
    /// Given by the app.
    case imported = 2
    /// Of an older keystore, which does not say.
    case unknown = 3
    /// Given by the app under a key of the hardware.
    case securelyImported = 4
}

/// What was checked when the system was started.
///
/// May grow: a `switch` over it has an `@unknown default`.
@nonexhaustive(warn)
public enum VerifiedBootState: Int64, CaseIterable, Sendable {
    /// The system is the maker's.
    case verified = 0
    /// The system is signed by a key that the owner has chosen.
    case selfSigned = 1
    /// Nothing was checked.
    case unverified = 2
    /// The check failed.
    case failed = 3
}

/// How the system was started. The hash came with version 3.
///
///     SEQUENCE { OCTET STRING verifiedBootKey, BOOLEAN deviceLocked,
///                ENUMERATED verifiedBootState, OCTET STRING verifiedBootHash OPTIONAL }
public struct RootOfTrust: Hashable, Sendable {
    /// The key that signed the system; 32 zeros on some phones that are verified and locked.
    public let bootKey: [UInt8]
    /// Whether the bootloader is locked.
    public var isLocked: Bool { lockedByte != 0 }
    /// What was checked.
    public let state: VerifiedBootState
    /// The digest of all that was started; all zeros on some phones.
    public let bootHash: [UInt8]?
    /// The byte that says whether the bootloader is locked.
    package let lockedByte: UInt8

    init(_ cursor: inout DERCursor, in der: Span<UInt8>) throws(DERError) {
        var fields = DERCursor(try cursor.next(.sequence, in: der))
        bootKey = der.copy(try fields.next(.octetString, in: der))
        // X.690 §11.1 wants 0xFF for true. Titan M of 2018 and others write 0x01, which Google
        // reads as true.
        let locked = try fields.next(.boolean, in: der)
        guard locked.count == 1 else { throw DERError(.unexpectedTag, at: locked.lowerBound) }
        lockedByte = der[locked.lowerBound]
        state = try fields.word(of: VerifiedBootState.self, .enumerated, in: der)
        bootHash = fields.isAtEnd ? nil : der.copy(try fields.next(.octetString, in: der))
        try fields.finish()
    }
}

/// The app that had a key made, as the system knows it.
///
///     SEQUENCE { SET OF SEQUENCE { OCTET STRING name, INTEGER version },
///                SET OF OCTET STRING signer }
public struct AttestedApps: Hashable, Sendable {
    /// The most packages that are read, and the most signers. Apps that share a user id stand
    /// here together; 13 packages have been seen.
    public static let entriesMax = 256

    /// An app of the user id that had the key made.
    public struct Package: Hashable, Sendable {
        /// The package name.
        public let name: String
        /// The version code.
        public let version: Int64
    }

    /// The packages that share the user id.
    public let packages: [Package]
    /// SHA-256 of their signing certificates.
    public let signers: [[UInt8]]

    /// What systems before Android 17 write where they lost the app's name. It is gone after a
    /// restart of the phone.
    static let unknownNames: Set<String> = ["UnknownApplication", "UnknownPackage"]

    /// Whether the system knew which app asked.
    var isKnown: Bool { packages.contains { !Self.unknownNames.contains($0.name) } }

    /// Reads the content of the OCTET STRING. One that holds the bare words is an app that is not
    /// known.
    init(_ content: Range<Int>, in der: Span<UInt8>) throws(DERError) {
        guard !Self.unknownNames.contains(String(decoding: der.copy(content), as: UTF8.self)) else {
            (packages, signers) = ([], [])
            return
        }
        var outer = DERCursor(content)
        var fields = DERCursor(try outer.next(.sequence, in: der))
        try outer.finish()
        packages = try fields.list(max: Self.entriesMax, in: der) { cursor throws(DERError) in
            var package = DERCursor(try cursor.next(.sequence, in: der))
            let name = try package.next(.octetString, in: der)
            let version = try package.integer(.integer, in: der)
            try package.finish()
            guard let text = String(utf8: der.copy(name)) else {
                throw DERError(.unexpectedTag, at: name.lowerBound)
            }
            return Package(name: text, version: version)
        }
        signers = try fields.list(max: Self.entriesMax, in: der) { cursor throws(DERError) in
            der.copy(try cursor.next(.octetString, in: der))
        }
        try fields.finish()
    }
}

extension DERCursor {
    /// Reads a number that stands for a word.
    mutating func word<Word: RawRepresentable<Int64>>(
        of type: Word.Type,
        _ tag: DERTag,
        in der: Span<UInt8>
    ) throws(DERError) -> Word {
        let start = offset
        guard let word = Word(rawValue: try integer(tag, in: der)) else {
            throw DERError(.badInteger, at: start)
        }
        return word
    }

    /// Reads a SET OF these. Their order, which X.690 §11.6 fixes, is free: keystores don't sort.
    mutating func list<Element>(
        max: Int,
        in der: Span<UInt8>,
        _ read: (inout DERCursor) throws(DERError) -> Element
    ) throws(DERError) -> [Element] {
        var cursor = DERCursor(try next(.set, in: der))
        var list: [Element] = []
        while !cursor.isAtEnd {
            guard list.count < max else { throw DERError(.tooMany, at: cursor.offset) }
            list.append(try read(&cursor))
        }
        return list
    }
}
