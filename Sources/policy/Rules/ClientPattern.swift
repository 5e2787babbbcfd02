package import HTTPWire

/// The clients that a rule is for, by their addresses: those of `client` without those of
/// `not_client`.
///
/// The address is the one that the gateway takes for the client's, after trusted proxies and the
/// PROXY protocol. Only the peer of a Unix socket that is not trusted has none: it is in no
/// network.
///
/// The networks are kept as ranges, so that a look-up is a binary search, and so that one pattern
/// covers another exactly when it has all of its addresses.
package struct ClientPattern: Hashable, Sendable {
    /// An IPv4 address has the number that RFC 4291 §2.5.5.2 gives it in IPv6.
    private typealias Addresses = [ClosedRange<UInt128>]

    /// The networks of `client`; empty for all addresses, and for none.
    package let networks: [IPNetwork]
    /// The networks of `not_client`.
    package let excluded: [IPNetwork]
    /// In ascending order, with others between them.
    private let ranges: Addresses

    package init(_ networks: [IPNetwork], without excluded: [IPNetwork] = []) {
        self.networks = networks
        self.excluded = excluded
        let all = networks.isEmpty ? [0...UInt128.max] : Self.union(networks)
        ranges = Self.subtracting(Self.union(excluded), from: all)
    }

    /// All clients.
    package static let all = ClientPattern([])

    /// Whether `not_client` leaves no address.
    package var isEmpty: Bool { ranges.isEmpty }

    /// Whether the rule is for this client.
    ///
    /// - client: `nil` for a peer without an address.
    package func matches(_ client: IPAddress?) -> Bool {
        guard let client else { return networks.isEmpty }
        let number = client.number
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < number { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].lowerBound <= number
    }

    /// Whether every client of the other pattern is one of this.
    package func covers(_ other: ClientPattern) -> Bool {
        guard networks.isEmpty || !other.networks.isEmpty else { return false }
        return Self.subtracting(ranges, from: other.ranges).isEmpty
    }

    /// Whether a client is of both patterns.
    package func meets(_ other: ClientPattern) -> Bool {
        networks.isEmpty && other.networks.isEmpty || !intersection(other).isEmpty
    }

    /// An address of the pattern; one of the other pattern, too, where both share one. It is an
    /// IPv4 address, if there is one.
    package func sample(sharedWith other: ClientPattern = .all) -> IPAddress? {
        let shared = intersection(other)
        return Self.sample(shared.isEmpty ? ranges : shared)
    }

    /// An address of the pattern that the other one does not have.
    package func sample(outside other: ClientPattern) -> IPAddress? {
        Self.sample(Self.subtracting(other.ranges, from: ranges))
    }

    /// `10.0.0.0/8, 2001:db8::/32 without 10.1.0.0/16`, or `any without 10.1.0.0/16`.
    package var text: String {
        let all = networks.isEmpty ? "any" : networks.map(\.text).joined(separator: ", ")
        guard !excluded.isEmpty else { return all }
        return "\(all) without \(excluded.map(\.text).joined(separator: ", "))"
    }

    // MARK: Ranges

    private func intersection(_ other: ClientPattern) -> Addresses {
        Self.subtracting(Self.subtracting(other.ranges, from: ranges), from: ranges)
    }

    private static func sample(_ ranges: Addresses) -> IPAddress? {
        let ofIPv4 = ranges.first { $0.overlaps(UInt128.ofIPv4) }
        guard
            let number = ofIPv4.map({ max($0.lowerBound, UInt128.ofIPv4.lowerBound) })
                ?? ranges.first?.lowerBound
        else { return nil }
        return IPAddress(
            high: UInt64(truncatingIfNeeded: number >> 64),
            low: UInt64(truncatingIfNeeded: number)
        )
    }

    private static func union(_ networks: [IPNetwork]) -> Addresses {
        let ranges = networks.flatMap(\.numbers).sorted { $0.lowerBound < $1.lowerBound }
        return ranges.reduce(into: []) { merged, range in
            guard let last = merged.last,
                last.upperBound == .max || last.upperBound + 1 >= range.lowerBound
            else { return merged.append(range) }
            merged[merged.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
        }
    }

    /// - removed: in ascending order.
    private static func subtracting(_ removed: Addresses, from ranges: Addresses) -> Addresses {
        ranges.flatMap { range -> Addresses in
            var left: Addresses = []
            var start = range.lowerBound
            for gap in removed where gap.overlaps(range) {
                if gap.lowerBound > start { left.append(start...(gap.lowerBound - 1)) }
                guard gap.upperBound < range.upperBound else { return left }
                start = max(start, gap.upperBound + 1)
            }
            return left + [start...range.upperBound]
        }
    }
}

extension UInt128 {
    /// The numbers of IPv4 addresses.
    fileprivate static let ofIPv4: ClosedRange<UInt128> = 0xFFFF_0000_0000...0xFFFF_FFFF_FFFF
}

extension IPAddress {
    fileprivate var number: UInt128 {
        switch self {
        case .v4(let address): UInt128.ofIPv4.lowerBound | UInt128(address)
        case .v6(let high, let low): UInt128(high) << 64 | UInt128(low)
        }
    }
}

extension IPNetwork {
    /// The numbers of its addresses. A network of IPv6 has none of IPv4, as
    /// ``contains(_:)`` says.
    fileprivate var numbers: [ClosedRange<UInt128>] {
        let first = address.number
        if case .v4 = address {
            return [first...(first | UInt128(UInt32.max) >> UInt128(prefixBits))]
        }
        // A smart shift: 128 gives zero.
        let all = first...(first | UInt128.max >> UInt128(prefixBits))
        let mapped = UInt128.ofIPv4
        guard all.contains(mapped.lowerBound) else { return [all] }
        let below = all.lowerBound...(mapped.lowerBound - 1)
        guard mapped.upperBound < all.upperBound else { return [below] }
        return [below, (mapped.upperBound + 1)...all.upperBound]
    }
}
