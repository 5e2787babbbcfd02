internal import Encodings

/// What one side, the system or the hardware, says of a key and the phone: the tags that are used,
/// of the many there are.
///
///     SEQUENCE { [tag] EXPLICIT value, … }        each tag once at most, in any order
///
/// Other tags are skipped with what is in them: each version has new ones. A tag that comes twice
/// is refused: two readers could take different ones.
public struct AuthorizationList: Hashable, Sendable {
    /// The most tags that are read. 34 have been seen.
    public static let tagsMax = 128
    /// The most numbers in one set of purposes or digests.
    public static let numbersMax = 64

    /// Purposes that a key may have.
    enum Purpose { static let sign: Int64 = 2 }
    /// Algorithms of keys.
    enum Algorithm { static let ec: Int64 = 3 }
    /// Curves of keys.
    enum Curve { static let p256: Int64 = 1 }
    /// Digests that a key may sign.
    enum Digest { static let sha256: Int64 = 4 }

    /// 1: 2 signs, 3 verifies, 6 agrees on keys, 7 attests other keys.
    public private(set) var purposes: [Int64]?
    /// 2: 1 is RSA, 3 is EC.
    public private(set) var algorithm: Int64?
    /// 3: in bits.
    public private(set) var keySize: Int64?
    /// 5: 0 none, 2 SHA-1, 4 SHA-256, 5 SHA-384, 6 SHA-512.
    public private(set) var digests: [Int64]?
    /// 10: 1 is P-256.
    public private(set) var curve: Int64?
    /// 400, 401 and 402, in milliseconds since 1970: from when on the key is active, and until when
    /// it signs and is used. The keystore holds to them; nothing here does.
    public private(set) var dates = KeyDates()
    /// 702.
    public private(set) var origin: KeyOrigin?
    /// 704.
    public private(set) var rootOfTrust: RootOfTrust?
    /// 705: such as 160000; 0 before a release.
    public private(set) var osVersion: Int64?
    /// 706: YYYYMM.
    public private(set) var osPatchLevel: Int64?
    /// 709. The hardware can't know it.
    public private(set) var apps: AttestedApps?
    /// 718: YYYYMMDD; some phones write 0, or six digits.
    public private(set) var vendorPatchLevel: Int64?
    /// 719: as 718.
    public private(set) var bootPatchLevel: Int64?
    /// 724: a digest of the system's modules.
    public private(set) var moduleHash: [UInt8]?
    /// What a strict reader would refuse, and genuine phones write.
    package private(set) var oddities = ListOddities()

    init(_ content: Range<Int>, in der: Span<UInt8>) throws(DERError) {
        var cursor = DERCursor(content)
        var seen: Set<UInt32> = []
        while !cursor.isAtEnd {
            let start = cursor.offset
            let element = try cursor.next(in: der)
            guard element.tag == .explicit(element.tag.number) else {
                throw DERError(.unexpectedTag, at: start)
            }
            guard seen.insert(element.tag.number).inserted else {
                throw DERError(.duplicate, at: start)
            }
            guard seen.count <= Self.tagsMax else { throw DERError(.tooMany, at: start) }
            oddities.note(element, in: der)
            var value = DERCursor(element.content)
            guard try read(element.tag.number, &value, in: der) else { continue }
            try value.finish()
        }
    }

    /// Reads the value of a tag; `false` for one that is skipped.
    private mutating func read(
        _ tag: UInt32,
        _ value: inout DERCursor,
        in der: Span<UInt8>
    ) throws(DERError) -> Bool {
        switch tag {
        case 1: purposes = try Self.numbers(&value, in: der)
        case 2: algorithm = try value.integer(.integer, in: der)
        case 3: keySize = try value.integer(.integer, in: der)
        case 5: digests = try Self.numbers(&value, in: der)
        case 10: curve = try value.integer(.integer, in: der)
        // A date that never comes may have more than 64 bits; it is no reason to refuse a key.
        case 400: dates.active = try? value.integer(.integer, in: der)
        case 401: dates.originationExpire = try? value.integer(.integer, in: der)
        case 402: dates.usageExpire = try? value.integer(.integer, in: der)
        case 702: origin = try value.word(of: KeyOrigin.self, .integer, in: der)
        case 704: rootOfTrust = try RootOfTrust(&value, in: der)
        case 705: osVersion = try value.integer(.integer, in: der)
        case 706: osPatchLevel = try value.integer(.integer, in: der)
        case 709: apps = try AttestedApps(try value.next(.octetString, in: der), in: der)
        case 718: vendorPatchLevel = try value.integer(.integer, in: der)
        case 719: bootPatchLevel = try value.integer(.integer, in: der)
        case 724: moduleHash = der.copy(try value.next(.octetString, in: der))
        default: return false
        }
        return true
    }

    private static func numbers(
        _ value: inout DERCursor,
        in der: Span<UInt8>
    ) throws(DERError) -> [Int64] {
        try value.list(max: numbersMax, in: der) { cursor throws(DERError) in
            try cursor.integer(.integer, in: der)
        }
    }
}

/// What a strict reader of an ``AuthorizationList`` would stumble over. It decides nothing.
package struct ListOddities: Hashable, Sendable {
    /// Tags whose SET is not in the order of X.690 §11.6.
    package private(set) var unsortedSets: [UInt32] = []
    /// Whether a tag comes after a greater one.
    package private(set) var hasUnsortedTags = false
    /// Whether the list has `creationDateTime` (701), which the system writes.
    package private(set) var hasCreationDate = false
    private var greatestTag: UInt32 = 0

    mutating func note(_ element: DERCursor.Element, in der: Span<UInt8>) {
        let tag = element.tag.number
        if tag < greatestTag { hasUnsortedTags = true }
        greatestTag = max(greatestTag, tag)
        if tag == 701 { hasCreationDate = true }
        var value = DERCursor(element.content)
        // A value that can't be read is refused elsewhere, or belongs to a tag that is skipped.
        guard let set = try? value.next(.set, in: der), (try? Self.isSorted(set, in: der)) == false
        else { return }
        unsortedSets.append(tag)
    }

    private static func isSorted(
        _ content: Range<Int>,
        in der: Span<UInt8>
    ) throws(DERError) -> Bool {
        var cursor = DERCursor(content)
        var before: [UInt8] = []
        while !cursor.isAtEnd {
            let start = cursor.offset
            _ = try cursor.next(in: der)
            let element = der.copy(start..<cursor.offset)
            guard !element.lexicographicallyPrecedes(before) else { return false }
            before = element
        }
        return true
    }
}

/// When a key may be used, in milliseconds since 1970.
public struct KeyDates: Hashable, Sendable {
    /// Not before this.
    public fileprivate(set) var active: Int64?
    /// It signs nothing after this.
    public fileprivate(set) var originationExpire: Int64?
    /// It verifies nothing after this.
    public fileprivate(set) var usageExpire: Int64?
}
