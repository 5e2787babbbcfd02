extension RequestHead {
    /// Whether the request is a CORS preflight (Fetch, "CORS-preflight request"): a browser's
    /// question whether a page of another origin may send a request.
    ///
    /// It is OPTIONS with one Origin and one Access-Control-Request-Method, and has neither content
    /// nor credentials nor proof. A request that has anything by which an origin could take it for
    /// another one is none: Upgrade, a field that overrides the method, or Connection options that
    /// name fields, which then would end here.
    ///
    /// `Content-Length: 0` is no content: some proxies add it.
    package func isPreflight(_ octets: Span<UInt8>) -> Bool {
        guard method == .options, form == .origin, framing == .none || framing == .length(0),
            fields.kinds.isDisjoint(with: .neverInPreflight), fields.connection.nominations == 0
        else { return false }
        var origins = 0
        var methods = 0
        for field in fields.fields where field.kind == .other && !field.value.isEmpty {
            if OctetScan.equal(octets, field.name, "origin") { origins += 1 }
            if OctetScan.equal(octets, field.name, "access-control-request-method") {
                methods += 1
            }
        }
        return origins == 1 && methods == 1
    }
}
