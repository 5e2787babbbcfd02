/// The names of each ``FieldKind``, in buckets by length.
struct KnownFieldNames: Sendable {
    private struct Row: Sendable {
        let first: UInt64
        let second: UInt64
        let third: UInt64
        let kind: FieldKind
    }

    private static let lengthMax = 24
    private static let shared = KnownFieldNames()

    private var rows: [Row] = []
    /// `starts[n]` is the first row of a name of n bytes, `starts[n + 1]` the end of its bucket.
    private var starts: [Int] = []

    private init() {
        let names = Self.names.map { name, kind in
            let bytes = name.withUTF8Buffer { unsafe Array($0) }
            precondition(
                bytes.count <= Self.lengthMax,
                "KnownFieldNames: a name has at most 24 bytes"
            )
            return (FoldedName(bytes.span, 0..<bytes.count), kind)
        }
        for length in 0...Self.lengthMax + 1 {
            starts.append(rows.count)
            for (name, kind) in names where name.count == length {
                rows.append(
                    Row(first: name.first, second: name.second, third: name.third, kind: kind)
                )
            }
        }
    }

    /// The kind of a field name.
    ///
    /// `range`: a valid token within `bytes`.
    @inline(__always)
    static func kind(_ bytes: Span<UInt8>, _ range: Range<Int>) -> FieldKind {
        let name = FoldedName(bytes, range)
        if name.hasUnderscore { return .underscored }
        if name.count > lengthMax, hasUnderscore(bytes, range) { return .underscored }
        let kind = shared.kind(name)
        if kind == .other, hasSpecial(bytes, range), shared.kind(name.hyphenated) != .other {
            return .disguised
        }
        return kind
    }

    /// The kind of a name of letters and hyphens.
    @inline(__always)
    static func kind(_ name: FoldedName) -> FieldKind { shared.kind(name) }

    /// The kind of the twin that a name has, once all but its letters and digits are hyphens.
    static func kindOfTwin(_ bytes: Span<UInt8>, _ range: Range<Int>) -> FieldKind {
        shared.kind(FoldedName(bytes, range).hyphenated)
    }

    @inline(never)
    private static func hasUnderscore(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        for index in range where bytes[index] == UInt8(ascii: "_") { return true }
        return false
    }

    /// Whether a name has a byte that is neither a letter nor a digit nor a hyphen.
    @inline(never)
    private static func hasSpecial(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        for index in range
        where FoldedName.isSpecial(bytes[index] | 0x20) && bytes[index] != UInt8(ascii: "-") {
            return true
        }
        return false
    }

    private func kind(_ name: FoldedName) -> FieldKind {
        if name.count <= Self.lengthMax {
            for index in starts[name.count]..<starts[name.count + 1] {
                let row = rows[index]
                if row.first == name.first, row.second == name.second, row.third == name.third {
                    return row.kind
                }
            }
        }
        return Self.family(name)
    }

    /// The kind of a name that belongs to a family by its prefix.
    private static func family(_ name: FoldedName) -> FieldKind {
        // The words are the prefixes' bytes, the first byte lowest.
        let second = name.second
        switch name.first {
        case 0x2D79_6F76_6E65_2D78:  // "x-envoy-"
            return .targetOverride
        case 0x696C_632D_736D_2D78:  // "x-ms-cli", then "ent-prin", "cipal"
            return second == 0x6E69_7270_2D74_6E65 && name.third & 0xFF_FFFF_FFFF == 0x6C_6170_6963
                ? .hopStatement : .other
        case 0x6D2D_6E7A_6D61_2D78:  // "x-amzn-m", then "tls-"
            return second & 0xFFFF_FFFF == 0x2D73_6C74 ? .hopStatement : .other
        case 0x632D_746E_6569_6C63:  // "client-c", then "ert"
            return second & 0xFF_FFFF == 0x74_7265 ? .hopStatement : .other
        case 0x746E_6569_6C63_2D78:  // "x-client", then "-cert"
            return second & 0xFF_FFFF_FFFF == 0x74_7265_632D ? .hopStatement : .other
        case 0x6569_6C63_2D6C_7373:  // "ssl-clie", then "nt-"
            return second & 0xFF_FFFF == 0x2D_746E ? .hopStatement : .other
        case 0x6C63_2D6C_7373_2D78:  // "x-ssl-cl", then "ient-"
            return second & 0xFF_FFFF_FFFF == 0x2D_746E_6569 ? .hopStatement : .other
        case 0x6F72_6664_756F_6C63:  // "cloudfro", then "nt-forwa", "rded-pro"
            return second == 0x6177_726F_662D_746E && name.third == 0x6F72_702D_6465_6472
                ? .hopStatement : .other
        case 0x616C_6664_756F_6C63:  // "cloudfla", then "re-cdn-c", "ache-con"
            return second == 0x632D_6E64_632D_6572 && name.third == 0x6E6F_632D_6568_6361
                ? .targetedCacheControl : .other
        case 0x2D79_6669_6C74_656E:  // "netlify-", then "cdn-cach", "e-contro"
            return second == 0x6863_6163_2D6E_6463 && name.third == 0x6F72_746E_6F63_2D65
                ? .targetedCacheControl : .other
        case 0x6574_7461_2D70_7061:  // "app-atte", then "st-"
            return second & 0xFF_FFFF == 0x2D_7473 ? .appAttestOther : .other
        case 0x7461_2D70_7061_2D78:  // "x-app-at", then "test-"
            return second & 0xFF_FFFF_FFFF == 0x2D_7473_6574 ? .appAttestOther : .other
        case 0x7261_7772_6F66_2D78:  // "x-forwar", then "ded-"
            return second & 0xFFFF_FFFF == 0x2D64_6564 ? .hopStatement : .other
        default: return .other
        }
    }
}

extension KnownFieldNames {
    /// The names, and which software reads those that are deleted by default.
    ///
    /// Frameworks read the fields of a previous hop. So do many libraries that search a list of
    /// fields for a client's address (request-ip for Node.js, RealIP of Go's chi, TrustedPlatform
    /// of Gin, helpers for Java's `getRemoteAddr`), and applications written for one platform.
    static let names: [(StaticString, FieldKind)] = [
        // Routing and framing.
        ("host", .host),
        ("content-length", .contentLength),
        ("transfer-encoding", .transferEncoding),
        ("trailer", .trailer),
        // Hop by hop.
        ("connection", .connection),
        ("keep-alive", .keepAlive),
        ("proxy-connection", .proxyConnection),
        ("te", .te),
        ("upgrade", .upgrade),
        ("http2-settings", .http2Settings),
        ("proxy-authenticate", .proxyAuthenticate),
        ("proxy-authorization", .proxyAuthorization),
        // For the gateway.
        ("expect", .expect),
        ("max-forwards", .maxForwards),
        ("via", .via),
        ("date", .date),
        // The request's name at others: most proxies and frameworks; W3C Trace Context.
        ("x-request-id", .requestID),
        ("traceparent", .traceparent),
        ("tracestate", .tracestate),
        // A previous hop's statements: RFC 7239 and its forerunners, which nearly all software
        // reads.
        ("forwarded", .forwarded),
        ("x-forwarded-for", .xForwardedFor),
        ("x-forwarded-proto", .xForwardedProto),
        ("x-forwarded-host", .xForwardedHost),
        ("x-forwarded-port", .xForwardedPort),
        ("x-forwarded", .hopStatement),
        ("forwarded-for", .hopStatement),
        // The client's address: nginx, Echo, Gin, chi.
        ("x-real-ip", .clientAddress),
        // Apache's mod_remoteip by its examples; request-ip.
        ("x-client-ip", .clientAddress),
        // Rails (ActionDispatch::RemoteIp), PHP applications by HTTP_CLIENT_IP.
        ("client-ip", .clientAddress),
        // Rackspace, Riverbed, Zeus; request-ip.
        ("x-cluster-client-ip", .clientAddress),
        // Akamai, Cloudflare Enterprise; chi, request-ip.
        ("true-client-ip", .clientAddress),
        // Cloudflare; Gin, request-ip.
        ("cf-connecting-ip", .clientAddress),
        ("cf-connecting-ipv6", .clientAddress),
        ("cf-pseudo-ipv4", .clientAddress),
        // Fastly, Fly.io, DigitalOcean, Vercel, Imperva, Sucuri, Alibaba and similar ones.
        ("fastly-client-ip", .clientAddress),
        ("fly-client-ip", .clientAddress),
        ("do-connecting-ip", .clientAddress),
        ("x-vercel-forwarded-for", .clientAddress),
        ("incap-client-ip", .clientAddress),
        ("x-sucuri-clientip", .clientAddress),
        ("ali-cdn-real-ip", .clientAddress),
        ("cdn-src-ip", .clientAddress),
        // WebLogic's plug-ins; Java helpers ask for both whatever the server.
        ("wl-proxy-client-ip", .clientAddress),
        ("proxy-client-ip", .clientAddress),
        // Azure Front Door.
        ("x-azure-clientip", .clientAddress),
        ("x-azure-socketip", .clientAddress),
        // Google: App Engine, and services that fetch for a user.
        ("x-appengine-remote-addr", .clientAddress),
        ("x-appengine-user-ip", .clientAddress),
        ("x-proxyuser-ip", .clientAddress),
        // Envoy; the rest of its X-Envoy-… is a family.
        ("x-envoy-external-address", .clientAddress),
        // ingress-nginx.
        ("x-original-forwarded-for", .clientAddress),
        // Applications of their own.
        ("x-originating-ip", .clientAddress),
        ("x-remote-ip", .clientAddress),
        ("x-remote-addr", .clientAddress),
        // The scheme: Exchange, IIS, WebLogic, WSGI snippets (ReverseProxied), Tornado.
        ("front-end-https", .hopStatement),
        ("x-arr-ssl", .hopStatement),
        ("wl-proxy-ssl", .hopStatement),
        ("x-appengine-https", .hopStatement),
        ("x-url-scheme", .hopStatement),
        ("x-scheme", .hopStatement),
        // The client's certificate, as nginx, IIS and WebLogic hand it on. Client-Cert… (RFC 9440),
        // SSL-Client-… (ingress-nginx, Apache), X-SSL-Client-…, X-Client-Cert… and AWS's
        // X-Amzn-Mtls-… are families.
        ("x-ssl-cert", .hopStatement),
        ("x-client-verify", .hopStatement),
        ("x-client-dn", .hopStatement),
        ("x-client-s-dn", .hopStatement),
        ("x-arr-clientcert", .hopStatement),
        ("wl-proxy-client-cert", .hopStatement),
        // Another path: IIS URL Rewrite, Laminas, older Symfony, Drupal; ingress-nginx; iisnode.
        ("x-original-url", .targetOverride),
        ("x-rewrite-url", .targetOverride),
        ("x-original-uri", .targetOverride),
        ("x-waws-unencoded-url", .targetOverride),
        // The path's beginning: WSGI snippets (ReverseProxied).
        ("x-script-name", .targetOverride),
        ("script-name", .targetOverride),
        // Another host: frameworks' host overrides, Azure App Service.
        ("x-original-host", .targetOverride),
        ("x-host", .targetOverride),
        ("x-http-host-override", .targetOverride),
        ("disguised-host", .targetOverride),
        // Rack::Sendfile makes a path of them (CVE-2025-61780).
        ("x-sendfile-type", .targetOverride),
        ("x-accel-mapping", .targetOverride),
        // Next.js passes over its middleware (CVE-2025-29927).
        ("x-middleware-subrequest", .targetOverride),
        // Another method: Rails, Symfony, Laravel, Express's method-override, Jersey, Django REST.
        ("x-http-method-override", .methodOverride),
        ("x-method-override", .methodOverride),
        ("x-http-method", .methodOverride),
        ("x-original-method", .methodOverride),
        // CGI's HTTP_PROXY ("httpoxy", CVE-2016-5385).
        ("proxy", .proxy),
        // The client's and the gateway's statements.
        ("app-attest-key-id", .appAttestKeyID),
        ("app-attest-assertion", .appAttestAssertion),
        ("app-attest-challenge", .appAttestChallenge),
        ("app-attest-unsupported", .appAttestUnsupported),
        ("app-attest-session", .appAttestSession),
        ("app-attest-sequence", .appAttestSequence),
        ("app-attest-signature", .appAttestSignature),
        ("app-attest-verdict", .appAttestVerdict),
        ("app-attest-reason", .appAttestReason),
        ("app-attest-app-id", .appAttestAppID),
        ("app-attest-device-token", .appAttestDeviceToken),
        ("app-attest-device-bits", .appAttestDeviceBits),
        // Content and credentials.
        ("content-digest", .contentDigest),
        ("content-type", .contentType),
        ("content-encoding", .contentEncoding),
        ("authorization", .authorization),
        ("cookie", .cookie),
        // Of responses.
        ("set-cookie", .setCookie),
        ("www-authenticate", .wwwAuthenticate),
        ("server", .server),
        ("cache-control", .cacheControl),
        ("expires", .expires),
        ("last-modified", .lastModified),
        // For the caches of one operator: RFC 9213, Akamai, Fastly and Varnish, nginx, Vercel.
        // Cloudflare's and Netlify's names are too long for this table: see the families.
        ("cdn-cache-control", .targetedCacheControl),
        ("akamai-cache-control", .targetedCacheControl),
        ("edge-control", .targetedCacheControl),
        ("surrogate-control", .targetedCacheControl),
        ("x-accel-expires", .targetedCacheControl),
        ("vercel-cdn-cache-control", .targetedCacheControl),
    ]
}
