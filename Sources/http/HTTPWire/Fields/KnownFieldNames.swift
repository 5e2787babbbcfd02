/// The table of the names behind ``FieldKind``, in buckets by length.
struct KnownFieldNames: Sendable {
    private struct Row: Sendable {
        let first: UInt64
        let second: UInt64
        let third: UInt64
        let kind: FieldKind
    }

    private static let lengthMax = 24
    private static let shared = KnownFieldNames()

    private var rows: [Row] = []
    /// `starts[n]` is the first row of a name of n bytes, `starts[n + 1]` the end of its bucket.
    private var starts: [Int] = []

    private init() {
        let names = Self.names.map { name, kind in
            let octets = name.withUTF8Buffer { Array($0) }
            precondition(
                octets.count <= Self.lengthMax,
                "KnownFieldNames: a name has at most 24 bytes"
            )
            return (FoldedName(octets.span, 0..<octets.count), kind)
        }
        for length in 0...Self.lengthMax + 1 {
            starts.append(rows.count)
            for (name, kind) in names where name.count == length {
                rows.append(
                    Row(first: name.first, second: name.second, third: name.third, kind: kind)
                )
            }
        }
    }

    /// The kind of a field name.
    ///
    /// `range`: a valid token within `octets`.
    @inline(__always)
    static func kind(_ octets: Span<UInt8>, _ range: Range<Int>) -> FieldKind {
        let name = FoldedName(octets, range)
        if name.hasUnderscore { return .underscored }
        if name.count > lengthMax, hasUnderscore(octets, range) { return .underscored }
        let kind = shared.kind(name)
        if kind == .other, hasSpecial(octets, range), shared.kind(name.hyphenated) != .other {
            return .disguised
        }
        return kind
    }

    /// The kind of a name of letters and hyphens.
    @inline(__always)
    static func kind(_ name: FoldedName) -> FieldKind { shared.kind(name) }

    /// The kind of the twin that a name has, once all but its letters and digits are hyphens.
    static func kindOfTwin(_ octets: Span<UInt8>, _ range: Range<Int>) -> FieldKind {
        shared.kind(FoldedName(octets, range).hyphenated)
    }

    @inline(never)
    private static func hasUnderscore(_ octets: Span<UInt8>, _ range: Range<Int>) -> Bool {
        for index in range where octets[index] == UInt8(ascii: "_") { return true }
        return false
    }

    /// Whether a name has a byte that is neither a letter nor a digit nor a hyphen.
    @inline(never)
    private static func hasSpecial(_ octets: Span<UInt8>, _ range: Range<Int>) -> Bool {
        for index in range
        where FoldedName.isSpecial(octets[index] | 0x20) && octets[index] != UInt8(ascii: "-") {
            return true
        }
        return false
    }

    private func kind(_ name: FoldedName) -> FieldKind {
        if name.count <= Self.lengthMax {
            for index in starts[name.count]..<starts[name.count + 1] {
                let row = rows[index]
                if row.first == name.first, row.second == name.second, row.third == name.third {
                    return row.kind
                }
            }
        }
        return Self.family(name)
    }

    /// The kind of a name that belongs to a family by its prefix.
    private static func family(_ name: FoldedName) -> FieldKind {
        // The words are the prefixes' bytes, the first byte lowest.
        let second = name.second
        switch name.first {
        case 0x2D79_6F76_6E65_2D78:  // "x-envoy-"
            return .targetOverride
        case 0x696C_632D_736D_2D78:  // "x-ms-cli", then "ent-prin", "cipal"
            return second == 0x6E69_7270_2D74_6E65 && name.third & 0xFF_FFFF_FFFF == 0x6C_6170_6963
                ? .hopStatement : .other
        case 0x6F72_6664_756F_6C63:  // "cloudfro", then "nt-forwa", "rded-pro"
            return second == 0x6177_726F_662D_746E && name.third == 0x6F72_702D_6465_6472
                ? .hopStatement : .other
        case 0x616C_6664_756F_6C63:  // "cloudfla", then "re-cdn-c", "ache-con"
            return second == 0x632D_6E64_632D_6572 && name.third == 0x6E6F_632D_6568_6361
                ? .targetedCacheControl : .other
        case 0x2D79_6669_6C74_656E:  // "netlify-", then "cdn-cach", "e-contro"
            return second == 0x6863_6163_2D6E_6463 && name.third == 0x6F72_746E_6F63_2D65
                ? .targetedCacheControl : .other
        case 0x6574_7461_2D70_7061:  // "app-atte", then "st-"
            return second & 0xFF_FFFF == 0x2D_7473 ? .appAttestOther : .other
        case 0x7461_2D70_7061_2D78:  // "x-app-at", then "test-"
            return second & 0xFF_FFFF_FFFF == 0x2D_7473_6574 ? .appAttestOther : .other
        case 0x7261_7772_6F66_2D78:  // "x-forwar", then "ded-"
            return second & 0xFFFF_FFFF == 0x2D64_6564 ? .hopStatement : .other
        default:
            return .other
        }
    }
}
