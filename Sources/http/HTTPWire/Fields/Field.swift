/// One field line: where its name and its value are, counted from the start of the head.
package struct Field: Sendable {
    private let nameStart: UInt32
    private let valueStart: UInt32
    private let valueCount: UInt32
    private let nameCount: UInt16
    package let kind: FieldKind
    private var flags: UInt8

    /// Bytes of the name, a token.
    @inline(__always)
    package var name: Range<Int> { Int(nameStart)..<Int(nameStart) &+ Int(nameCount) }

    /// Whether CGI makes the same variable of the name and of another one that the gateway knows.
    func isTwinOfKnown(_ octets: Span<UInt8>) -> Bool {
        switch kind {
        case .disguised: true
        case .underscored: KnownFieldNames.kindOfTwin(octets, name) != .other
        default: false
        }
    }

    /// Bytes of the value without the white space around it; may be empty.
    @inline(__always)
    package var value: Range<Int> { Int(valueStart)..<Int(valueStart) &+ Int(valueCount) }

    /// Whether the line is exactly `name: value CRLF` and can be copied as it is.
    @inline(__always)
    var isCanonical: Bool { flags & 1 != 0 }

    /// Whether Connection names the field, so that it ends here (RFC 9110 §7.6.1).
    @inline(__always)
    package internal(set) var isNominated: Bool {
        get { flags & 2 != 0 }
        set { flags = newValue ? flags | 2 : flags & ~2 }
    }

    /// The whole line with its CRLF, if it is canonical.
    @inline(__always)
    var line: Range<Int> { Int(nameStart)..<Int(valueStart) &+ Int(valueCount) &+ 2 }

    /// - `name` and `value`: within a head, whose length fits 32 bits; a name's length fits 16.
    @inline(__always)
    init(name: Range<Int>, value: Range<Int>, kind: FieldKind, isCanonical: Bool) {
        nameStart = UInt32(truncatingIfNeeded: name.lowerBound)
        nameCount = UInt16(truncatingIfNeeded: name.count)
        valueStart = UInt32(truncatingIfNeeded: value.lowerBound)
        valueCount = UInt32(truncatingIfNeeded: value.count)
        self.kind = kind
        flags = isCanonical ? 1 : 0
    }
}
