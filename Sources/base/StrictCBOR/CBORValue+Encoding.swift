extension CBORValue {
    /// The encoding with the shortest heads; maps in the order they have.
    public var encoded: [UInt8] {
        var octets: [UInt8] = []
        encode(into: &octets)
        return octets
    }

    private func encode(into octets: inout [UInt8]) {
        switch self {
        case .unsigned(let value):
            Self.head(.unsigned, value, into: &octets)
        case .negative(let value):
            Self.head(.negative, value, into: &octets)
        case .bytes(let content):
            Self.head(.bytes, UInt64(content.count), into: &octets)
            octets += content
        case .text(let text):
            let content = Array(text.utf8)
            Self.head(.text, UInt64(content.count), into: &octets)
            octets += content
        case .array(let items):
            Self.head(.array, UInt64(items.count), into: &octets)
            for item in items { item.encode(into: &octets) }
        case .map(let pairs):
            Self.head(.map, UInt64(pairs.count), into: &octets)
            for pair in pairs {
                pair.key.encode(into: &octets)
                pair.value.encode(into: &octets)
            }
        case .tagged(let tag, let item):
            Self.head(.tag, tag, into: &octets)
            item.encode(into: &octets)
        case .simple(let value):
            // RFC 8949 §3.3: 0…23 in the first byte, 32…255 in a second; 24…31 do not exist.
            precondition(!(24..<32).contains(value), "CBOR: simple values 24…31 are reserved")
            Self.head(.simple, UInt64(value), into: &octets)
        case .float(let bits, let width):
            precondition([2, 4, 8].contains(width), "CBOR: a float has 2, 4 or 8 bytes")
            octets.append(0xE0 | (width == 2 ? 25 : width == 4 ? 26 : 27))
            Self.append(bits, width: width, to: &octets)
        }
    }

    private static func head(
        _ major: CBORCursor.Major,
        _ argument: UInt64,
        into octets: inout [UInt8]
    ) {
        let type = major.rawValue << 5
        switch argument {
        case 0...23:
            octets.append(type | UInt8(argument))
        case 24...0xFF:
            octets.append(type | 24)
            append(argument, width: 1, to: &octets)
        case 0x100...0xFFFF:
            octets.append(type | 25)
            append(argument, width: 2, to: &octets)
        case 0x1_0000...0xFFFF_FFFF:
            octets.append(type | 26)
            append(argument, width: 4, to: &octets)
        default:
            octets.append(type | 27)
            append(argument, width: 8, to: &octets)
        }
    }

    private static func append(_ value: UInt64, width: Int, to octets: inout [UInt8]) {
        for step in (0..<width).reversed() {
            octets.append(UInt8(truncatingIfNeeded: value >> UInt64(step * 8)))
        }
    }
}
