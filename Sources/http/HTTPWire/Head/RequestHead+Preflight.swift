extension RequestHead {
    /// Whether the request is a CORS preflight (Fetch, "CORS-preflight request"): a browser's
    /// question whether a page of another origin may send a request.
    ///
    /// It is OPTIONS with one Origin and one Access-Control-Request-Method, and has neither content
    /// nor credentials nor proof. A request that has anything by which an origin could take it for
    /// another one is none: Upgrade, a field that overrides method, path or host, a name that CGI
    /// can't tell from a known one, or Connection options that name fields, which then would end
    /// here.
    ///
    /// `Content-Length: 0` is no content: some proxies add it.
    package func isPreflight(_ octets: Span<UInt8>) -> Bool {
        guard method == .options, form == .origin, framing == .none || framing == .length(0),
            fields.kinds.isDisjoint(with: .neverInPreflight), fields.connection.nominations == 0
        else { return false }
        var origins = 0
        var methods = 0
        for field in fields.fields {
            guard !field.isTwinOfKnown(octets), !isOverride(field, octets) else { return false }
            guard field.kind == .other, !field.value.isEmpty else { continue }
            if OctetScan.equal(octets, field.name, "origin") { origins += 1 }
            if OctetScan.equal(octets, field.name, "access-control-request-method") {
                methods += 1
            }
        }
        return origins == 1 && methods == 1
    }

    /// Whether an origin could take the request for one with another path or host.
    ///
    /// Envoy and Azure's Application Gateway add fields of this kind to every request that they
    /// forward, so these don't count: `X-Envoy-…`, except the path, and `X-Original-Host`.
    private func isOverride(_ field: Field, _ octets: Span<UInt8>) -> Bool {
        guard field.kind == .targetOverride else { return false }
        if OctetScan.equal(octets, field.name, "x-envoy-original-path") { return true }
        if OctetScan.equal(octets, field.name, "x-original-host") { return false }
        let prefix = "x-envoy-" as StaticString
        let end = field.name.lowerBound + min(field.name.count, prefix.utf8CodeUnitCount)
        return !OctetScan.equal(octets, field.name.lowerBound..<end, prefix)
    }
}
