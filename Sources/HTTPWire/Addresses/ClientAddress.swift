/// Finds who the client is when trusted proxies stand between.
///
/// A proxy's statement is believed when the proxy is trusted: from the peer on, the list is walked
/// from its right end as long as the address that spoke is trusted. The first untrusted address is
/// the client; what it wrote itself, further left, is never looked at (RFC 7239 §8.1).
package enum ClientAddress {
    /// The field that the trusted proxies write. One of them only: a proxy that writes one passes
    /// on the other as the client sent it.
    package enum Source: Sendable {
        case xForwardedFor, forwarded
    }

    /// The most hops that are walked.
    private static var hopsMax: Int { 16 }

    /// The address of the client, or of the outermost trusted proxy when it does not say.
    ///
    /// `isTrusted`: asked for `peer` first.
    package static func find(
        _ fields: FieldSection,
        _ octets: Span<UInt8>,
        source: Source,
        peer: IPAddress,
        isTrusted: (IPAddress) -> Bool
    ) -> IPAddress {
        let kind = source == .xForwardedFor ? FieldKind.xForwardedFor : .forwarded
        guard fields.contains(kind), isTrusted(peer) else { return peer }
        var client = peer
        var hops = 0
        for index in fields.fields.indices.reversed() where fields.fields[index].kind == kind {
            let value = fields.fields[index].value
            var remaining = memberCount(octets, value)
            while remaining > 0, hops < hopsMax {
                remaining -= 1
                hops += 1
                guard let member = member(remaining, octets, value),
                    let node = source == .forwarded ? forParameter(octets, member) : member,
                    let address = address(octets, node)
                else { return client }
                client = address
                guard isTrusted(client) else { return client }
            }
            guard hops < hopsMax else { return client }
        }
        return client
    }

    /// How many members a list has, commas in quoted strings aside.
    private static func memberCount(_ octets: Span<UInt8>, _ value: Range<Int>) -> Int {
        var count = 1
        walk(octets, value) { octet, _ in
            if octet == UInt8(ascii: ",") { count += 1 }
            return true
        }
        return count
    }

    /// A member of a list, without the white space around it; `nil` when it is empty.
    private static func member(
        _ number: Int,
        _ octets: Span<UInt8>,
        _ value: Range<Int>
    ) -> Range<Int>? {
        var seen = 0
        var start = value.lowerBound
        var end = value.upperBound
        walk(octets, value) { octet, index in
            guard octet == UInt8(ascii: ",") else { return true }
            if seen == number {
                end = index
                return false
            }
            seen += 1
            start = index + 1
            return true
        }
        let member = OctetScan.trimmed(octets, start..<end)
        return member.isEmpty ? nil : member
    }

    /// Visits the octets outside of quoted strings until `visit` answers false.
    private static func walk(
        _ octets: Span<UInt8>,
        _ range: Range<Int>,
        visit: (UInt8, Int) -> Bool
    ) {
        var index = range.lowerBound
        var isQuoted = false
        while index < range.upperBound {
            let octet = octets[index]
            if octet == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else if isQuoted {
                if octet == UInt8(ascii: "\\") { index += 1 }
            } else if !visit(octet, index) {
                return
            }
            index += 1
        }
    }

    /// The node of the `for` parameter of a member (RFC 7239 §4), without quotes.
    private static func forParameter(
        _ octets: Span<UInt8>,
        _ member: Range<Int>
    ) -> Range<Int>? {
        var found: Range<Int>?
        var start = member.lowerBound
        func take(_ pair: Range<Int>) {
            let pair = OctetScan.trimmed(octets, pair)
            guard pair.count > 4,
                OctetScan.equal(octets, pair.lowerBound..<pair.lowerBound + 4, "for=")
            else { return }
            found = pair.lowerBound + 4..<pair.upperBound
        }
        walk(octets, member) { octet, index in
            guard octet == UInt8(ascii: ";") else { return true }
            take(start..<index)
            start = index + 1
            return true
        }
        take(start..<member.upperBound)
        guard let node = found else { return nil }
        guard octets[node.lowerBound] == UInt8(ascii: "\"") else { return node }
        guard node.count > 2, octets[node.upperBound - 1] == UInt8(ascii: "\"") else { return nil }
        return node.lowerBound + 1..<node.upperBound - 1
    }

    /// An address with or without brackets and port; `nil` for `unknown` and `_hidden` nodes.
    private static func address(_ octets: Span<UInt8>, _ node: Range<Int>) -> IPAddress? {
        if let address = IPAddress(octets, node) { return address }
        // host and port.
        guard let authority = Authority(octets, node) else { return nil }
        var host = authority.host
        if octets[host.lowerBound] == UInt8(ascii: "[") {
            host = host.lowerBound + 1..<host.upperBound - 1
        }
        return IPAddress(octets, host)
    }
}
