/// Why bytes are not the CBOR that is read here, and where.
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
        case trailingOctets
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
