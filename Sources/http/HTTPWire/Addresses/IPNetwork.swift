/// A network in CIDR notation: `10.0.0.0/8`, `2001:db8::/32`; an address alone is a network of one.
package struct IPNetwork: Hashable, Sendable {
    package let address: IPAddress
    /// 0...32 for IPv4, 0...128 for IPv6.
    package let prefixBits: Int

    /// Reads a network; `nil` when the address or the prefix is invalid, or when bits are set
    /// beyond the prefix, which usually means that something else was meant.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let address = IPAddress(String(first)) else { return nil }
        let width = if case .v4 = address { 32 } else { 128 }
        var bits = width
        if parts.count == 2 {
            guard parts[1].utf8.allSatisfy(Octet.isDigit), let number = Int(parts[1]),
                number <= width
            else { return nil }
            bits = number
        }
        self.address = address
        prefixBits = bits
        guard masked(address) == address else { return nil }
    }

    package func contains(_ other: IPAddress) -> Bool {
        switch (address, other) {
        case (.v4, .v4), (.v6, .v6): masked(other) == address
        case (.v4, .v6), (.v6, .v4): false
        }
    }

    private func masked(_ address: IPAddress) -> IPAddress {
        switch address {
        case .v4(let address):
            // A smart shift: 32 gives zero.
            .v4(address & (UInt32.max << UInt32(32 - prefixBits)))
        case .v6(let high, let low):
            .v6(
                high: prefixBits >= 64 ? high : high & (UInt64.max << UInt64(64 - prefixBits)),
                low: prefixBits <= 64 ? 0 : low & (UInt64.max << UInt64(128 - prefixBits))
            )
        }
    }
}
