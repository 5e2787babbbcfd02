extension KnownFieldNames {
    /// The names, and which software reads those that are deleted by default.
    ///
    /// What a hop says is read by frameworks and by the many libraries that look for a client's
    /// address in a list of fields (request-ip for Node.js, RealIP of Go's chi, TrustedPlatform of
    /// Gin, helpers for Java's `getRemoteAddr`), and by applications written for one platform.
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
        // By what name others know the request: most proxies and frameworks; W3C Trace Context.
        ("x-request-id", .requestID),
        ("traceparent", .traceparent),
        ("tracestate", .tracestate),
        // What the hop before says: RFC 7239 and its forerunners, read by nearly everything.
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
        // The client's certificate, as nginx, IIS, Azure and WebLogic hand it on.
        ("x-ssl-client-verify", .hopStatement),
        ("x-ssl-client-cert", .hopStatement),
        ("x-ssl-client-dn", .hopStatement),
        ("x-ssl-client-s-dn", .hopStatement),
        ("x-client-cert", .hopStatement),
        ("ssl-client-verify", .hopStatement),
        ("ssl-client-cert", .hopStatement),
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
