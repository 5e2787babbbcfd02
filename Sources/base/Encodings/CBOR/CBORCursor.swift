// CBOR (RFC 8949): the strict part of it that App Attest objects use.
//
// Read: definite lengths only; arguments in their shortest form (§4.2.1); no map with a key twice
// (§5.6); text that is UTF-8 (§3.1); one item and nothing after it. Depth, number of items and
// number of bytes have a `CBORBudget`, which decoding uses up. A broken rule is a `CBORError` with
// the offset, never a trap. The order of map keys is not checked: Apple does not sort them.
//
// Two ways to read: `CBORValue(decoding:budget:)` makes a tree; `CBORCursor` walks the bytes
// without copying, for the assertion that comes with each request.

/// Walks CBOR items front to back without copying.
///
/// The cursor holds an offset and a budget. The bytes are given with each call and must be the
/// same. Each method reads one item, or the head of one, and throws when it has another type or is
/// malformed. After a throw the cursor is useless.
public struct CBORCursor: Sendable {
    /// The major types (RFC 8949 §3.1).
    enum Major: UInt8 {
        case unsigned, negative, bytes, text, array, map, tag, simple
    }

    /// The first byte of the next item.
    public private(set) var offset: Int
    private let end: Int
    private(set) var budget: CBORBudget

    /// A cursor over a part of the bytes. Throws `.tooLong`.
    public init(_ range: Range<Int>, budget: CBORBudget) throws(CBORError) {
        guard range.count <= budget.bytesMax else {
            throw CBORError(.tooLong, at: range.lowerBound)
        }
        offset = range.lowerBound
        end = range.upperBound
        self.budget = budget
    }

    /// Whether no byte is left.
    public var isAtEnd: Bool { offset == end }

    /// Refuses bytes that are left. Throws `.trailingBytes`.
    public func finish() throws(CBORError) {
        guard isAtEnd else { throw CBORError(.trailingBytes, at: offset) }
    }

    /// Reads an unsigned integer.
    public mutating func unsigned(in bytes: Span<UInt8>) throws(CBORError) -> UInt64 {
        try argument(of: .unsigned, in: bytes)
    }

    /// Reads a byte string: where its bytes lie.
    public mutating func bytes(in bytes: Span<UInt8>) throws(CBORError) -> Range<Int> {
        try content(argument(of: .bytes, in: bytes))
    }

    /// Reads a text string: where its bytes lie, which are UTF-8.
    public mutating func text(in bytes: Span<UInt8>) throws(CBORError) -> Range<Int> {
        let start = offset
        let range = try content(argument(of: .text, in: bytes))
        try checkUTF8(range, of: bytes, itemAt: start)
        return range
    }

    /// Reads the head of an array and returns the number of its items. The caller reads the items
    /// and counts its depth.
    public mutating func array(in bytes: Span<UInt8>) throws(CBORError) -> Int {
        let start = offset
        return try count(argument(of: .array, in: bytes), itemsEach: 1, at: start)
    }

    /// Reads the head of a map and returns the number of its pairs. The caller checks that no key
    /// occurs twice, since it knows the keys.
    public mutating func map(in bytes: Span<UInt8>) throws(CBORError) -> Int {
        let start = offset
        return try count(argument(of: .map, in: bytes), itemsEach: 2, at: start)
    }

    /// Reads one item of any type with all its content, by the same rules as a tree.
    ///
    /// - Returns: the range of its bytes.
    public mutating func skip(in bytes: Span<UInt8>) throws(CBORError) -> Range<Int> {
        let start = offset
        _ = try CBORValue(reading: &self, in: bytes, keeping: false)
        return start..<offset
    }

    // MARK: For the tree

    mutating func head(
        in bytes: Span<UInt8>
    ) throws(CBORError) -> (major: Major, information: UInt8, argument: UInt64) {
        let start = offset
        guard offset < end, end <= bytes.count else { throw CBORError(.truncated, at: offset) }
        try budget.takeItem(at: start)
        let initial = bytes[offset]
        offset += 1
        guard let major = Major(rawValue: initial >> 5) else {
            throw CBORError(.reserved, at: start)
        }
        let information = initial & 0x1F
        switch information {
        case 0...23: return (major, information, UInt64(information))
        case 24...27:
            let width = 1 << Int(information - 24)
            guard width <= end - offset else { throw CBORError(.truncated, at: end) }
            var argument: UInt64 = 0
            for index in offset..<(offset + width) {
                argument = argument << 8 | UInt64(bytes[index])
            }
            offset += width
            try checkShortest(argument, width: width, major: major, at: start)
            return (major, information, argument)
        case 31: throw CBORError(.indefiniteLength, at: start)
        default: throw CBORError(.reserved, at: start)
        }
    }

    mutating func content(_ argument: UInt64) throws(CBORError) -> Range<Int> {
        guard let count = Int(exactly: argument), count <= end - offset else {
            throw CBORError(.truncated, at: end)
        }
        let range = offset..<(offset + count)
        offset = range.upperBound
        return range
    }

    /// A number of items that can still follow. Each takes a byte at least, so a head that claims
    /// more is refused before memory is reserved for it.
    func count(_ argument: UInt64, itemsEach: Int, at start: Int) throws(CBORError) -> Int {
        guard let count = Int(exactly: argument), count <= (end - offset) / itemsEach else {
            throw CBORError(.truncated, at: end)
        }
        guard count <= budget.itemsLeft / itemsEach else {
            throw CBORError(.tooManyItems, at: start)
        }
        return count
    }

    func checkUTF8(
        _ range: Range<Int>,
        of bytes: Span<UInt8>,
        itemAt start: Int
    ) throws(CBORError) {
        guard Self.isUTF8(bytes.extracting(range)) else { throw CBORError(.notUTF8, at: start) }
    }

    /// `UTF8Span` does this check too, but Apple's systems have it since 26 only.
    private static func isUTF8(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.indices.contains(where: { bytes[$0] >= 0x80 }) else { return true }
        var parser = Unicode.UTF8.ForwardParser()
        var rest = bytes.copy(0..<bytes.count).makeIterator()
        while true {
            switch parser.parseScalar(from: &rest) {
            case .valid: continue
            case .emptyInput: return true
            case .error: return false
            }
        }
    }

    mutating func enter(at start: Int) throws(CBORError) { try budget.enter(at: start) }

    mutating func leave() { budget.leave() }

    private mutating func argument(
        of expected: Major,
        in bytes: Span<UInt8>
    ) throws(CBORError) -> UInt64 {
        let start = offset
        let head = try head(in: bytes)
        guard head.major == expected else { throw CBORError(.unexpectedType, at: start) }
        return head.argument
    }

    /// Floating-point numbers have no argument to shorten; a simple value in two bytes is 32 or
    /// more.
    private func checkShortest(
        _ argument: UInt64,
        width: Int,
        major: Major,
        at start: Int
    ) throws(CBORError) {
        if major == .simple {
            guard width > 1 || argument >= 32 else { throw CBORError(.reserved, at: start) }
            return
        }
        let isShortest =
            switch width {
            case 1: argument >= 24
            case 2: argument > UInt64(UInt8.max)
            case 4: argument > UInt64(UInt16.max)
            default: argument > UInt64(UInt32.max)
            }
        guard isShortest else { throw CBORError(.notShortest, at: start) }
    }
}

/// The limits of one decoding. The decoding uses them up, so a small object cannot claim much work.
public struct CBORBudget: Sendable {
    /// The most bytes of the whole object.
    public let bytesMax: Int
    /// Arrays, maps and tags that may still be entered inside one another.
    public private(set) var depthLeft: Int
    /// Items, keys and values counted apart, that may still be read.
    public private(set) var itemsLeft: Int

    /// A budget of bytes, levels and items.
    public init(bytesMax: Int, depthMax: Int, itemsMax: Int) {
        self.bytesMax = bytesMax
        depthLeft = depthMax
        itemsLeft = itemsMax
    }

    mutating func takeItem(at offset: Int) throws(CBORError) {
        guard itemsLeft > 0 else { throw CBORError(.tooManyItems, at: offset) }
        itemsLeft -= 1
    }

    mutating func enter(at offset: Int) throws(CBORError) {
        guard depthLeft > 0 else { throw CBORError(.tooDeep, at: offset) }
        depthLeft -= 1
    }

    mutating func leave() { depthLeft += 1 }
}

/// Why bytes are not CBOR of this kind, and where.
public struct CBORError: Error, Hashable, Sendable {
    /// Which rule was broken.
    @nonexhaustive
    public enum Reason: String, Sendable, CaseIterable {
        /// The bytes end inside an item.
        case truncated
        /// Additional information 28…30, or a simple value below 32 in two bytes (RFC 8949 §3,
        /// §3.3).
        case reserved
        /// Additional information 31: indefinite length, or a break.
        case indefiniteLength
        /// An argument that has a shorter form (RFC 8949 §4.2.1).
        case notShortest
        /// Text that is not UTF-8.
        case notUTF8
        /// A map has a key twice.
        case duplicateKey
        /// Bytes after the item.
        case trailingBytes
        /// An item of another type than the one expected.
        case unexpectedType
        /// Deeper than the budget allows.
        case tooDeep
        /// More items than the budget allows.
        case tooManyItems
        /// More bytes than the budget allows.
        case tooLong
    }

    /// Which rule was broken.
    public let reason: Reason
    /// The offset of the item that broke it, or of the first byte after the end.
    public let offset: Int

    /// An error at an offset.
    public init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}
