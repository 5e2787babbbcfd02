// The rows about who is let through where: denial, apps, signed fields.
extension InvalidConfigurationTests {
    static let policy: [Row] = [
        .line(
            5,
            """
            default: { mode: deny }
            rules: [{ id: a, match: { path: /a }, mode: off }]
            """,
            "p.yaml:6: a.origin: found no such key; use origin: shop | media"
        ),
        .line(
            5,
            "default: { mode: off }",
            "p.yaml:5: default.origin: found no such key; use origin: shop | media"
        ),
        .rule(
            "mode: enforce, apps: [TEAM123456.com.example.shpo]",
            """
            p.yaml:7: a.apps[0]: found the unknown app "TEAM123456.com.example.shpo"; use \
            TEAM123456.com.example.shop (did you mean TEAM123456.com.example.shop?)
            """
        ),
        .rule("mode: enforce, apps: []", "p.yaml:7: a.apps: found an empty list"),
        .line(
            3,
            "apps: [{ id: TEAM123456.a, environments: [development] }]",
            """
            p.yaml:5: default.apps: found no such key; use apps: [TEAM123456.a]: no app here has \
            the environment production, and others must be named
            """
        ),
        .line(
            3,
            "apps: [{ id: TEAM123456.a, environments: [production] }]\nrules: { id: a }",
            "p.yaml:4: rules: found a mapping; use a folder of rule files, or a list of rules"
        ),
        .line(
            1,
            "listen: [{ address: \"1.1.1.1:80\", decides: nginx }]",
            """
            p.yaml:1: listen[0].decides: found "nginx"; use auth_request | forward_auth | \
            ext_authz | ext_authz_grpc
            """
        ),
        .line(
            1,
            """
            trusted_proxies: [10.0.0.0/8]
            listen: [{ address: "1.1.1.1:80", decides: ext_authz_grpc, http2: off }]
            """,
            """
            p.yaml:2: listen[0].http2: found off beside decides: ext_authz_grpc, which needs \
            HTTP/2; use on, which is the default there, or leave it out
            """
        ),
        .line(
            1,
            "listen: [{ address: \"1.1.1.1:80\", decides: ext_authz }]",
            """
            p.yaml:1: listen[0].decides: found it without trusted_proxies, so that nobody may ask; \
            use trusted_proxies with the addresses of the proxies that ask
            """
        ),
        .line(
            1,
            """
            trusted_proxies: [10.0.0.0/8]
            listen: [{ address: "1.1.1.1:80", decides: ext_authz, proxy_protocol: true }]
            """,
            """
            p.yaml:2: listen[0].proxy_protocol: found it beside decides, where the peer itself has \
            to be a trusted proxy; use one of the two
            """
        ),
        .line(
            1,
            """
            trusted_proxies: [10.0.0.0/8]
            listen: [{ address: "1.1.1.1:80", decides: forward_auth }]
            """,
            """
            p.yaml:6: default.sign: found signed content, which does not come where \
            listen[0].decides is set; use content: whole beside decides where Traefik asks with \
            forwardBody; Caddy can't send content: have it forward such requests to a listener \
            without decides; or sign: [method, target, challenge]
            """
        ),
        .line(
            1,
            """
            trusted_proxies: [10.0.0.0/8]
            listen: [{ address: "1.1.1.1:80", decides: auth_request, content: none }]
            """,
            """
            p.yaml:6: default.sign: found signed content, which does not come where \
            listen[0].decides is set; use content: whole beside decides where HAProxy asks with \
            all content; nginx can't send content: have it forward such requests to a listener \
            without decides; or sign: [method, target, challenge]
            """
        ),
        .line(
            1,
            """
            trusted_proxies: [10.0.0.0/8]
            listen: [{ address: "1.1.1.1:80", decides: ext_authz }]
            """,
            """
            p.yaml:6: default.sign: found signed content, which does not come where \
            listen[0].decides is set; use content: whole beside decides, and with_request_body in \
            Envoy; or sign: [method, target, challenge]
            """
        ),
        .line(
            1,
            "listen: [{ address: \"1.1.1.1:80\", content: whole }]",
            """
            p.yaml:1: listen[0].content: found it without decides; use decides beside it, or \
            neither: a request's own content always comes
            """
        ),
    ]

    /// Names that the gateway removes or writes anew, one of each kind.
    static let changedFields: [Row] = [
        "connection", "keep-alive", "transfer-encoding", "content-length", "te", "trailer",
        "upgrade", "expect", "via", "max-forwards", "proxy-authorization", "forwarded",
        "x-forwarded-for", "x-forwarded-host", "x-forwarded-anything", "x-real-ip",
        "x-original-url", "x-http-method-override", "proxy", "app-attest-key-id",
        "app-attest-verdict", "app-attest-anything", "app-attest-unsupported",
        "app.attest.verdict",
    ].map { name in
        .rule(
            "mode: enforce, headers: [x-a, \(name)]",
            """
            p.yaml:7: a.headers[1]: found \(name); use other fields: the origin does not \
            get this one as the client sent it
            """
        )
    }
}
