// What a request says of the browser that sends it, and of the page for which it does.
extension RequestHead {
    /// Whether the request asks for an IP address, for `localhost`, or for one of these names.
    ///
    /// A stranger's page can have the stranger's own name lead to any address (DNS rebinding), and
    /// is then of the same origin as what answers there. It can't have an address as its name.
    ///
    /// - names: in lower case.
    package func asksForAddress(_ octets: Span<UInt8>, or names: [[UInt8]] = []) -> Bool {
        guard let host = Authority(octets, authority)?.host else { return false }
        // Only an IPv6 address has brackets.
        return octets[host.lowerBound] == UInt8(ascii: "[")
            || OctetScan.equal(octets, host, "localhost") || IPAddress(octets, host) != nil
            || names.contains { OctetScan.equal(octets, host, $0.span, 0..<$0.count) }
    }

    /// Whether a browser sends the request for a page that is not of the host that is asked.
    package func isCrossSite(_ octets: Span<UInt8>) -> Bool {
        for field in fields.fields {
            if OctetScan.equal(octets, field.name, "origin") {
                guard isOwnOrigin(octets, field.value) else { return true }
            } else if OctetScan.equal(octets, field.name, "sec-fetch-site") {
                guard
                    OctetScan.equal(octets, field.value, "same-origin")
                        || OctetScan.equal(octets, field.value, "none")
                else { return true }
            }
        }
        return false
    }

    /// Whether an origin (RFC 6454 §6.2) is that of the host that is asked. Either scheme will do:
    /// a proxy may have ended TLS.
    private func isOwnOrigin(_ octets: Span<UInt8>, _ value: Range<Int>) -> Bool {
        for scheme in ["http://", "https://"] as [StaticString] {
            let end = value.lowerBound + scheme.utf8CodeUnitCount
            guard end < value.upperBound,
                OctetScan.equal(octets, value.lowerBound..<end, scheme)
            else { continue }
            return OctetScan.equal(octets, end..<value.upperBound, octets, authority)
        }
        return false
    }

    /// The token of `Authorization: Bearer` (RFC 6750 §2.1); `nil` when there is none.
    package func bearerToken(_ octets: Span<UInt8>) -> Range<Int>? {
        guard let value = fields.only(.authorization)?.value else { return nil }
        let end = value.lowerBound + 7
        guard end < value.upperBound,
            OctetScan.equal(octets, value.lowerBound..<end, "bearer ")
        else { return nil }
        return OctetScan.trimmed(octets, end..<value.upperBound)
    }
}
