/// One CBOR item with all its contents.
public indirect enum CBORValue: Hashable, Sendable {
    /// 0…2⁶⁴ − 1.
    case unsigned(UInt64)
    /// −1 − n, for n of 0…2⁶⁴ − 1.
    case negative(UInt64)
    /// A byte string.
    case bytes([UInt8])
    case text(String)
    case array([CBORValue])
    /// A map in the order of its encoding.
    case map([Pair])
    /// A tagged item.
    case tagged(UInt64, CBORValue)
    /// A simple value: 20 false, 21 true, 22 null, 23 undefined, and those without a meaning.
    case simple(UInt8)
    /// A floating-point number in its encoded form: 2, 4 or 8 bytes wide.
    case float(bits: UInt64, width: Int)

    /// A key and its value.
    public struct Pair: Hashable, Sendable {
        /// The key.
        public let key: CBORValue
        /// The value.
        public let value: CBORValue

        /// A key and its value.
        public init(_ key: CBORValue, _ value: CBORValue) {
            self.key = key
            self.value = value
        }
    }

    /// A Boolean.
    public static func bool(_ value: Bool) -> CBORValue { .simple(value ? 21 : 20) }
    /// The null value.
    public static var null: CBORValue { .simple(22) }

    /// An integer of either sign.
    public static func integer(_ value: Int64) -> CBORValue {
        value < 0 ? .negative(UInt64(bitPattern: ~value)) : .unsigned(UInt64(value))
    }

    /// Decodes exactly one item. Throws the first rule that is broken, front to back.
    public init(decoding bytes: Span<UInt8>, budget: CBORBudget) throws(CBORError) {
        var cursor = try CBORCursor(0..<bytes.count, budget: budget)
        self = try CBORValue(reading: &cursor, in: bytes, keeping: true)
        try cursor.finish()
    }

    /// Decodes exactly one item. See ``init(decoding:budget:)-(Span<UInt8>,_)``.
    public init(decoding bytes: [UInt8], budget: CBORBudget) throws(CBORError) {
        try self.init(decoding: ContiguousArray(bytes).span, budget: budget)
    }

    /// The value of a text key of a map; `nil` for anything that is no map, or has no such key.
    public subscript(_ key: String) -> CBORValue? {
        guard case .map(let pairs) = self else { return nil }
        return pairs.first { $0.key == .text(key) }?.value
    }

    // MARK: Decoding

    /// Reads the item under the cursor. If `keeping` is false, it checks the item and drops it, and
    /// copies no string.
    init(reading cursor: inout CBORCursor, in bytes: Span<UInt8>, keeping: Bool) throws(CBORError) {
        let start = cursor.offset
        let head = try cursor.head(in: bytes)
        switch head.major {
        case .unsigned: self = .unsigned(head.argument)
        case .negative: self = .negative(head.argument)
        case .bytes:
            let range = try cursor.content(head.argument)
            self = .bytes(keeping ? bytes.copy(range) : [])
        case .text:
            let range = try cursor.content(head.argument)
            try cursor.checkUTF8(range, of: bytes, itemAt: start)
            self = .text(
                keeping ? String(decoding: bytes.copy(range), as: UTF8.self) : ""
            )
        case .array:
            let count = try cursor.count(head.argument, itemsEach: 1, at: start)
            try cursor.enter(at: start)
            var items: [CBORValue] = []
            for _ in 0..<count {
                let item = try CBORValue(reading: &cursor, in: bytes, keeping: keeping)
                if keeping { items.append(item) }
            }
            cursor.leave()
            self = .array(items)
        case .map:
            let count = try cursor.count(head.argument, itemsEach: 2, at: start)
            try cursor.enter(at: start)
            self = .map(try Self.pairs(count, reading: &cursor, in: bytes, keeping: keeping))
            cursor.leave()
        case .tag:
            try cursor.enter(at: start)
            let item = try CBORValue(reading: &cursor, in: bytes, keeping: keeping)
            cursor.leave()
            self = .tagged(head.argument, item)
        case .simple:
            switch head.information {
            case 25: self = .float(bits: head.argument, width: 2)
            case 26: self = .float(bits: head.argument, width: 4)
            case 27: self = .float(bits: head.argument, width: 8)
            default: self = .simple(UInt8(truncatingIfNeeded: head.argument))
            }
        }
    }

    private static func pairs(
        _ count: Int,
        reading cursor: inout CBORCursor,
        in bytes: Span<UInt8>,
        keeping: Bool
    ) throws(CBORError) -> [Pair] {
        var pairs: [Pair] = []
        // With shortest heads and no indefinite lengths, equal keys have equal bytes, so the bytes
        // are compared. Only a key that is a map can have another order inside, and then counts as
        // another key. The budget bounds the square.
        var keys: [Range<Int>] = []
        for _ in 0..<count {
            let start = cursor.offset
            let key = try CBORValue(reading: &cursor, in: bytes, keeping: keeping)
            let range = start..<cursor.offset
            for other in keys where bytes.equals(other, range) {
                throw CBORError(.duplicateKey, at: start)
            }
            keys.append(range)
            let value = try CBORValue(reading: &cursor, in: bytes, keeping: keeping)
            if keeping { pairs.append(Pair(key, value)) }
        }
        return pairs
    }
}

extension CBORValue {
    /// The encoding with the shortest heads; maps in the order they have.
    public var encoded: [UInt8] {
        var bytes: [UInt8] = []
        encode(into: &bytes)
        return bytes
    }

    private func encode(into bytes: inout [UInt8]) {
        switch self {
        case .unsigned(let value): Self.head(.unsigned, value, into: &bytes)
        case .negative(let value): Self.head(.negative, value, into: &bytes)
        case .bytes(let content):
            Self.head(.bytes, UInt64(content.count), into: &bytes)
            bytes += content
        case .text(let text):
            let content = Array(text.utf8)
            Self.head(.text, UInt64(content.count), into: &bytes)
            bytes += content
        case .array(let items):
            Self.head(.array, UInt64(items.count), into: &bytes)
            for item in items { item.encode(into: &bytes) }
        case .map(let pairs):
            Self.head(.map, UInt64(pairs.count), into: &bytes)
            for pair in pairs {
                pair.key.encode(into: &bytes)
                pair.value.encode(into: &bytes)
            }
        case .tagged(let tag, let item):
            Self.head(.tag, tag, into: &bytes)
            item.encode(into: &bytes)
        case .simple(let value):
            // RFC 8949 §3.3: 0…23 in the first byte, 32…255 in a second; 24…31 do not exist.
            precondition(!(24..<32).contains(value), "CBOR: simple values 24…31 are reserved")
            Self.head(.simple, UInt64(value), into: &bytes)
        case .float(let bits, let width):
            precondition([2, 4, 8].contains(width), "CBOR: a float has 2, 4 or 8 bytes")
            bytes.append(0xE0 | (width == 2 ? 25 : width == 4 ? 26 : 27))
            Self.append(bits, width: width, to: &bytes)
        }
    }

    private static func head(
        _ major: CBORCursor.Major,
        _ argument: UInt64,
        into bytes: inout [UInt8]
    ) {
        let type = major.rawValue << 5
        switch argument {
        case 0...23: bytes.append(type | UInt8(argument))
        case 24...0xFF:
            bytes.append(type | 24)
            append(argument, width: 1, to: &bytes)
        case 0x100...0xFFFF:
            bytes.append(type | 25)
            append(argument, width: 2, to: &bytes)
        case 0x1_0000...0xFFFF_FFFF:
            bytes.append(type | 26)
            append(argument, width: 4, to: &bytes)
        default:
            bytes.append(type | 27)
            append(argument, width: 8, to: &bytes)
        }
    }

    private static func append(_ value: UInt64, width: Int, to bytes: inout [UInt8]) {
        for step in (0..<width).reversed() {
            bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(step * 8)))
        }
    }
}
