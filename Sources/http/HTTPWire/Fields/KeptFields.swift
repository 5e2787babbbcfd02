/// Fields that one origin gets although they are deleted by default: `keep_fields`.
///
/// What a hop says of the client (`CF-Connecting-IP`) is kept from trusted proxies only: anybody
/// can write it. What makes an origin see another request (`X-HTTP-Method-Override`), and the trace
/// that an app begins (`traceparent`), are the client's to write, and kept from everybody.
package struct KeptFields: Sendable {
    /// From everybody.
    package private(set) var fromAll = FieldNameSet()
    /// From trusted proxies; holds those of ``fromAll`` too.
    package private(set) var fromProxies = FieldNameSet()
    /// Whether a trusted proxy's X-Forwarded-Host is kept.
    package private(set) var keepsHost = false
    /// Whether traceparent is kept.
    package private(set) var keepsTrace = false

    /// `names`: of fields for which ``isKeepable(_:)`` is true.
    package init(_ names: [String] = []) {
        for name in names {
            let octets = Array(name.utf8)
            let kind = FieldKind(name: octets)
            if FieldKindSet.overrides.union(.trace).contains(kind) { fromAll.insert(octets) }
            if kind == .traceparent { keepsTrace = true }
            if kind == .xForwardedHost { keepsHost = true }
            fromProxies.insert(octets)
        }
    }

    /// Whether a field is deleted by default and may be kept. Fields that the gateway writes itself
    /// may not, nor may `Proxy`, which has no use and which CGI turns into `HTTP_PROXY`.
    package static func isKeepable(_ name: String) -> Bool {
        let kind = FieldKind(name: Array(name.utf8))
        switch kind {
        case .forwarded, .xForwardedFor, .xForwardedProto, .proxy: return false
        default: return FieldKindSet([.provenance, .overrides, .trace]).contains(kind)
        }
    }
}
