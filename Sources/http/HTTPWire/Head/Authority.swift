/// A host and an optional port, as in Host and in an absolute-form target.
struct Authority {
    /// With the brackets of an IPv6 address.
    let host: Range<Int>
    /// Digits; may be empty, as `example.com:` has an empty port.
    let port: Range<Int>

    /// Reads `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2).
    ///
    /// Narrower than the grammar: a name has unreserved bytes only (``ByteSet/hostName``) and no
    /// empty label but for the root's dot at its end, an address in brackets is IPv6 without zone,
    /// a port is at most 65535. `nil` for anything else. `api.example.com..` is no host in DNS, and
    /// some servers take it for `api.example.com`.
    ///
    /// RFC 3986 §3.2.2 also allows sub-delims (`0.0.0.0=5000`) and percent-encoding. DNS has no
    /// host of such a name, so no client of ours sends one, and servers disagree about it. Tried
    /// with `Host: 0.0.0.0=5000`: Apache, lighttpd and Django answer 400; nginx, PHP, Node, Puma,
    /// gunicorn, waitress, uvicorn, aiohttp, tornado and Flask hand the name to the application as
    /// it is. An application that builds links, SQL or log lines of it breaks on `'`, `;` or `,`.
    init?(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        var index = range.lowerBound
        let end = range.upperBound
        guard index < end else { return nil }
        if bytes[index] == UInt8(ascii: "[") {
            while index < end, bytes[index] != UInt8(ascii: "]") { index += 1 }
            guard index < end else { return nil }
            guard IPAddress.isIPv6(bytes, range.lowerBound + 1..<index) else { return nil }
            index += 1
        } else {
            // A label must come at the beginning and after each dot, except a dot at the end.
            var isLabelEmpty = true
            while index < end, ByteSet.hostName.contains(bytes[index]) {
                let isDot = bytes[index] == UInt8(ascii: ".")
                guard !isDot || !isLabelEmpty else { return nil }
                isLabelEmpty = isDot
                index += 1
            }
            guard index > range.lowerBound else { return nil }
        }
        host = range.lowerBound..<index
        guard index < end else {
            port = end..<end
            return
        }
        guard bytes[index] == UInt8(ascii: ":") else { return nil }
        port = index + 1..<end
        var number = 0
        for index in port {
            guard ASCIIByte.isDigit(bytes[index]) else { return nil }
            number = number * 10 + Int(bytes[index] & 0x0F)
            guard number <= 65535 else { return nil }
        }
    }

    /// Whether both are the same host and port, the scheme's default port being the same as none.
    static func same(
        _ bytes: Span<UInt8>,
        _ one: Authority,
        _ other: Authority,
        isHTTPS: Bool
    ) -> Bool {
        guard ByteScan.equal(bytes, one.host, bytes, other.host) else { return false }
        return one.portNumber(bytes, isHTTPS: isHTTPS)
            == other.portNumber(bytes, isHTTPS: isHTTPS)
    }

    private func portNumber(_ bytes: Span<UInt8>, isHTTPS: Bool) -> Int {
        guard !port.isEmpty else { return isHTTPS ? 443 : 80 }
        // At most 65535, as the initialiser saw.
        return port.reduce(0) { $0 &* 10 &+ Int(bytes[$1] & 0x0F) }
    }
}
