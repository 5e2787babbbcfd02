package import HTTPWire

extension IPAddress {
    /// The 4 or 16 bytes in network order.
    package var bytes: [UInt8] {
        func bytes(_ value: UInt64, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64((count - 1 - $0) * 8)) }
        }
        switch self {
        case .v4(let address): return bytes(UInt64(address), 4)
        case .v6(let high, let low): return bytes(high, 8) + bytes(low, 8)
        }
    }
}
