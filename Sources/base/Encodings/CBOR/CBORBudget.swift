// CBOR (RFC 8949): the strict part of it that App Attest objects use.
//
// Read: definite lengths only; arguments in their shortest form (§4.2.1); no map with a key twice
// (§5.6); text that is UTF-8 (§3.1); one item and nothing after it. Depth, number of items and
// number of bytes have a `CBORBudget`, which decoding uses up. A broken rule is a `CBORError` with
// the offset, never a trap. The order of map keys is not checked: Apple does not sort them.
//
// Two ways to read: `CBORValue(decoding:budget:)` makes a tree; `CBORCursor` walks the bytes
// without copying, for the assertion that comes with each request.

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
