extension IPAddress {
    /// Whose address it is, as limits count: an IPv6 client has all addresses of a network of 64
    /// bits.
    package var network: UInt64 {
        switch self {
        case .v4(let address): UInt64(address)
        case .v6(let high, _): high
        }
    }
}
