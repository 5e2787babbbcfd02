/// A small set of field names, for those that configuration names and ``FieldKind`` does not.
package struct FieldNameSet: Sendable {
    /// Names in lower case.
    private var names: [[UInt8]] = []
    /// Bit n is set when a name of n octets is in the set; bit 63 stands for 63 and more.
    private var lengths: UInt64 = 0

    package init() {}

    package init(_ names: [String]) {
        for name in names { insert(Array(name.utf8)) }
    }

    package var isEmpty: Bool { names.isEmpty }

    /// Adds a name, in any case.
    package mutating func insert(_ name: [UInt8]) {
        names.append(name.map(OctetScan.folded))
        lengths |= Self.bit(name.count)
    }

    /// Whether a name is in the set, case aside. Linear in the number of names of its length.
    package func contains(_ octets: Span<UInt8>, _ name: Range<Int>) -> Bool {
        guard lengths & Self.bit(name.count) != 0 else { return false }
        for candidate in names
        where OctetScan.equal(octets, name, candidate.span, 0..<candidate.count) {
            return true
        }
        return false
    }

    @inline(__always)
    private static func bit(_ count: Int) -> UInt64 { 1 &<< UInt64(min(count, 63)) }
}
