/// An IPv4 or IPv6 address. An IPv4 address in the form of IPv6 (`::ffff:192.0.2.1`) is the IPv4
/// address.
package enum IPAddress: Hashable, Sendable {
    case v4(UInt32)
    case v6(high: UInt64, low: UInt64)

    /// From the eight groups of an IPv6 address.
    package init(high: UInt64, low: UInt64) {
        if high == 0, low &>> 32 == 0xFFFF {
            self = .v4(UInt32(truncatingIfNeeded: low))
        } else {
            self = .v6(high: high, low: low)
        }
    }

    /// Reads an address without brackets, port or zone; `nil` for anything else.
    package init?(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        if let address = Self.readIPv4(bytes, range) {
            self = .v4(address)
        } else if let groups = Self.readIPv6(bytes, range) {
            self.init(high: groups.high, low: groups.low)
        } else {
            return nil
        }
    }

    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        self.init(bytes.span, 0..<bytes.count)
    }

    static func isIPv6(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        readIPv6(bytes, range) != nil
    }

    /// Four decimal numbers without leading zeros: some readers take a leading zero for octal.
    private static func readIPv4(_ bytes: Span<UInt8>, _ range: Range<Int>) -> UInt32? {
        guard range.count >= 7, range.count <= 15 else { return nil }
        var address: UInt32 = 0
        var index = range.lowerBound
        for part in 0..<4 {
            if part > 0 {
                guard index < range.upperBound, bytes[index] == UInt8(ascii: ".") else {
                    return nil
                }
                index += 1
            }
            let start = index
            var number: UInt32 = 0
            while index < range.upperBound, index - start < 3, ASCIIByte.isDigit(bytes[index]) {
                number = number * 10 + UInt32(bytes[index] & 0x0F)
                index += 1
            }
            guard index > start, number <= 255, bytes[start] != UInt8(ascii: "0") || number == 0,
                number > 0 || index - start == 1
            else { return nil }
            address = address &<< 8 | number
        }
        return index == range.upperBound ? address : nil
    }

    /// RFC 4291 §2.2, all three forms.
    private static func readIPv6(
        _ bytes: Span<UInt8>,
        _ range: Range<Int>
    ) -> (high: UInt64, low: UInt64)? {
        guard range.count >= 2, range.count <= 45 else { return nil }
        var groups = IPv6Groups()
        var index = range.lowerBound
        let end = range.upperBound
        if bytes[index] == UInt8(ascii: ":") {
            guard bytes[index + 1] == UInt8(ascii: ":") else { return nil }
            groups.markGap()
            index += 2
        }
        while index < end {
            let start = index
            var group: UInt64 = 0
            while index < end, index - start < 4, let digit = ASCIIByte.hexadecimal(bytes[index]) {
                group = group &<< 4 | UInt64(digit)
                index += 1
            }
            if index < end, bytes[index] == UInt8(ascii: ".") {
                guard let tail = readIPv4(bytes, start..<end) else { return nil }
                guard groups.append(UInt64(tail &>> 16)), groups.append(UInt64(tail & 0xFFFF))
                else {
                    return nil
                }
                return groups.value
            }
            guard index > start, groups.append(group) else { return nil }
            guard index < end else { return groups.value }
            guard bytes[index] == UInt8(ascii: ":") else { return nil }
            index += 1
            guard index < end else { return nil }
            if bytes[index] == UInt8(ascii: ":") {
                guard groups.markGap() else { return nil }
                index += 1
            }
        }
        return groups.value
    }
}

/// The groups of an IPv6 address as they are read, `::` in between.
private struct IPv6Groups {
    private var before: (high: UInt64, low: UInt64) = (0, 0)
    private var count = 0
    /// How many groups came before `::`; -1 without `::`.
    private var gap = -1

    /// Takes a group of 16 bits; `false` when there is no room.
    mutating func append(_ group: UInt64) -> Bool {
        guard count < 8 else { return false }
        before.high = before.high &<< 16 | before.low &>> 48
        before.low = before.low &<< 16 | group
        count += 1
        return true
    }

    @discardableResult
    mutating func markGap() -> Bool {
        guard gap < 0 else { return false }
        gap = count
        return true
    }

    var value: (high: UInt64, low: UInt64)? {
        guard gap >= 0 else { return count == 8 ? before : nil }
        // `::` stands for at least one group.
        guard count < 8 else { return nil }
        var all = [UInt64](repeating: 0, count: 8)
        let missing = 8 - count
        for index in 0..<count {
            let place = index < gap ? index : index + missing
            all[place] = group(count - 1 - index)
        }
        return (
            all[0] &<< 48 | all[1] &<< 32 | all[2] &<< 16 | all[3],
            all[4] &<< 48 | all[5] &<< 32 | all[6] &<< 16 | all[7]
        )
    }

    /// The group that has `index` groups after it.
    private func group(_ index: Int) -> UInt64 {
        let word = index < 4 ? before.low : before.high
        return word &>> UInt64(index % 4 * 16) & 0xFFFF
    }
}

extension IPAddress {
    /// Appends the address as text: dotted decimal, or RFC 5952 without brackets.
    package func append(to bytes: inout [UInt8]) {
        switch self {
        case .v4(let address):
            // 15 characters at most: one growth of the array, not one for each.
            bytes.append(addingCapacity: 15) { text in
                for part in UInt32(0)..<4 {
                    if part > 0 { text.append(UInt8(ascii: ".")) }
                    let number = UInt8(truncatingIfNeeded: address &>> (24 - part * 8))
                    if number >= 100 { text.append(UInt8(ascii: "0") + number / 100) }
                    if number >= 10 { text.append(UInt8(ascii: "0") + number / 10 % 10) }
                    text.append(UInt8(ascii: "0") + number % 10)
                }
            }
        case .v6(let high, let low): Self.append(high, low, to: &bytes)
        }
    }

    private static func append(_ high: UInt64, _ low: UInt64, to bytes: inout [UInt8]) {
        func group(_ index: Int) -> UInt64 {
            (index < 4 ? high : low) &>> UInt64((3 - index % 4) * 16) & 0xFFFF
        }
        // RFC 5952 §4.2: the longest run of two or more zero groups, the first of equals.
        var run = 0..<0
        var index = 0
        while index < 8 {
            var end = index
            while end < 8, group(end) == 0 { end += 1 }
            if end - index > max(run.count, 1) { run = index..<end }
            index = end + 1
        }
        index = 0
        while index < 8 {
            if !run.isEmpty, index == run.lowerBound {
                bytes.append("::")
                index = run.upperBound
                continue
            }
            if index > 0, index != run.upperBound || run.isEmpty { bytes.append(UInt8(ascii: ":")) }
            bytes.append(hexadecimal: group(index))
            index += 1
        }
    }

    /// The address as text, for logs and configuration.
    package var text: String {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension IPAddress {
    /// The part of an address by which limits count: an IPv6 client has all addresses of a network
    /// of 64 bits.
    package var network: UInt64 {
        switch self {
        case .v4(let address): UInt64(address)
        case .v6(let high, _): high
        }
    }
}

/// A network in CIDR notation: `10.0.0.0/8`, `2001:db8::/32`; an address alone is a network of one.
package struct IPNetwork: Hashable, Sendable {
    package let address: IPAddress
    /// 0...32 for IPv4, 0...128 for IPv6.
    package let prefixBits: Int

    /// Reads a network; `nil` when the address or the prefix is invalid, or when bits are set
    /// beyond the prefix, which usually means that something else was meant.
    package init?(_ text: String) {
        guard let read = Self.parts(text), read.bits <= read.width else { return nil }
        self.init(read.address, read.bits)
        guard masked(address) == address else { return nil }
    }

    /// The network that a text means which is none: `10.0.0.0/8` for `10.1.2.3/8`, and for
    /// `::ffff:10.0.0.0/104`. `nil` where that is not clear.
    package static func meant(by text: String) -> IPNetwork? {
        guard let read = parts(text) else { return nil }
        // The prefix counts the 96 bits before the IPv4 address (RFC 4291 §2.5.5.2).
        let isMapped = read.width == 32 && text.contains(":") && read.bits >= 96
        let bits = isMapped ? read.bits - 96 : read.bits
        guard bits <= read.width else { return nil }
        let network = IPNetwork(read.address, bits)
        return IPNetwork(network.masked(read.address), bits)
    }

    private init(_ address: IPAddress, _ prefixBits: Int) {
        (self.address, self.prefixBits) = (address, prefixBits)
    }

    /// The prefix is at most 999, and the width that of the address.
    private static func parts(_ text: String) -> (address: IPAddress, bits: Int, width: Int)? {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let address = IPAddress(String(first)) else { return nil }
        let width = if case .v4 = address { 32 } else { 128 }
        guard parts.count == 2 else { return (address, width, width) }
        guard (1...3).contains(parts[1].utf8.count), parts[1].utf8.allSatisfy(ASCIIByte.isDigit),
            let bits = Int(parts[1])
        else { return nil }
        return (address, bits, width)
    }

    /// `10.0.0.0/8`; an address alone for a network of one.
    package var text: String {
        let isOne = if case .v4 = address { prefixBits == 32 } else { prefixBits == 128 }
        return isOne ? address.text : "\(address.text)/\(prefixBits)"
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
