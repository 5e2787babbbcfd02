import ConfigurationReading
import Cryptography
import Expectations
import Rules
import Testing

/// What `portcullis diff` says.
@Suite struct DifferenceTests {
    private static let base = """
        listen: [{ address: "127.0.0.1:0" }]
        origins: { shop: { servers: ["s:80"] }, media: { servers: ["m:80"] } }
        apps:
          - { id: TEAM123456.a, environments: [production] }
          - { id: TEAM123456.b, environments: [production] }
        store: { sqlite: p.db }
        default: { mode: deny }
        rules:
          - id: orders
            match: { method: POST, path: /v1/orders }
            origin: shop
            mode: enforce
            rollout: { percent: 25% }
            sign: [method, target, body]
            apps: [TEAM123456.a]
          - { id: get, match: { method: GET, path: /v1/** }, origin: shop, mode: observe }
          - { id: photos, match: { path: /photos/* }, origin: media, mode: "off" }

        """

    private func configuration(_ text: String) throws -> GatewayConfiguration {
        let loaded = load(text)
        expectEqual(loaded.errors.map(\.text), [])
        return try #require(loaded.configuration)
    }

    private func difference(
        _ changes: (String, String)...,
        orders: RolloutOrders = RolloutOrders()
    ) throws -> ConfigurationDifference {
        var text = Self.base
        for (old, new) in changes {
            #expect(text.contains(old))
            text = text.replacing(old, with: new)
        }
        return ConfigurationDifference(
            from: try configuration(Self.base),
            to: try configuration(text),
            orders: orders
        )
    }

    @Test func `files that mean the same have no difference`() throws {
        let same = try difference(
            ("percent: 25%", "percent: 25.00%"),
            ("servers: [\"m:80\"]", "servers: [m:80]")
        )
        expectEqual(same.endpoints, [])
        expectEqual(same.text, "no endpoint changes\n")
    }

    @Test(arguments: [
        ("mode: enforce\n", "mode: observe\n", "mode: enforce → observe"),
        ("percent: 25%", "percent: 50%", "rollout: 25% by key → 50% by key"),
        (
            "apps: [TEAM123456.a]", "apps: [TEAM123456.a, TEAM123456.b]",
            "apps: TEAM123456.a (production) → TEAM123456.a (production), TEAM123456.b (production)"
        ),
        ("origin: shop\n    mode", "origin: media\n    mode", "origin: shop (s:80) → media (m:80)"),
        (
            "path: /v1/orders }", "path: /v2/orders }",
            "requests: POST * /v1/orders → POST * /v2/orders"
        ),
    ])
    func `each change of an endpoint is told`(_ old: String, _ new: String, _ line: String) throws {
        let difference = try difference((old, new))
        expectEqual(difference.endpoints.map(\.id), ["orders"])
        #expect(difference.endpoints[0].lines.contains(line))
    }

    @Test func `what is signed is told both ways`() throws {
        let difference = try difference(("sign: [method, target, body]", "sign: [method, target]"))
        let lines = try #require(difference.endpoints.first).lines
        #expect(lines.contains("no longer: signs method, target, body"))
        #expect(lines.contains("now: signs method, target"))
    }

    @Test func `a server of an origin, or an app, shows at every rule that it concerns`() throws {
        let moved = try difference(("servers: [\"s:80\"]", "servers: [\"t:80\"]"))
        expectEqual(moved.endpoints.map(\.id), ["orders", "get"])
        let apps = try difference(
            (
                "TEAM123456.a, environments: [production]",
                "TEAM123456.a, environments: [production, development]"
            )
        )
        #expect(apps.endpoints.map(\.id).contains("orders"))
    }

    @Test(arguments: [
        (
            "environments: [production] }\n  - { id: TEAM123456.b",
            "environments: [production], bundle_versions: [\"7\"] }\n  - { id: TEAM123456.b",
            "apps: TEAM123456.a (production) → TEAM123456.a (production, version 7)"
        ),
        (
            "environments: [production] }\n  - { id: TEAM123456.b",
            "environments: [production], missing_extensions: refuse }\n  - { id: TEAM123456.b",
            "apps: TEAM123456.a (production) → TEAM123456.a (production, no older system)"
        ),
        (
            "environments: [production] }\n  - { id: TEAM123456.b",
            "environments: [production], receipt: required }\n  - { id: TEAM123456.b",
            "other demands when keys of TEAM123456.a enrol"
        ),
        (
            "rollout: { percent: 25% }", "rollout: { percent: 25%, salt: x }",
            "rollout: 25% by key → 25% by key, salt \"x\""
        ),
    ])
    func `other demands of an app, and another salt, are told`(
        _ old: String,
        _ new: String,
        _ line: String
    ) throws {
        let difference = try difference((old, new))
        let orders = try #require(difference.endpoints.first { $0.id == "orders" })
        expectEqual(orders.lines, [line])
    }

    @Test func `a rule that goes, or comes, says who answers its requests`() throws {
        let photos =
            "  - { id: photos, match: { path: /photos/* }, origin: media, mode: \"off\" }\n"
        let gone = try difference((photos, ""))
        expectEqual(
            gone.text,
            """
            photos
              removed: * * /photos/*, off
              its requests meet default (deny) now

            """
        )
        let new = "  - { id: new, match: { path: /photos/a }, origin: media, mode: \"off\" }\n"
        let come = try difference((photos, new + photos))
        expectEqual(come.endpoints.map(\.id), ["new"])
        expectEqual(come.endpoints[0].lines[1], "its requests met photos (off) before")
    }

    @Test func `requests that another rule answers now are told`() throws {
        let wide = """
            rules:
              - { id: wide, match: { method: GET, path: /v1/* }, origin: shop, mode: "off" }

            """
        let difference = try difference(("rules:\n", wide))
        expectEqual(difference.endpoints.map(\.id), ["wide", "get"])
        expectEqual(
            difference.endpoints[1].lines,
            [
                "requests such as GET * /v1/-0- met get (observe), and meet wide (off) now"
            ]
        )
    }

    @Test func `an order that stands in the way of a change is told with it`() throws {
        var orders = RolloutOrders()
        let note = try #require(
            RolloutNote(at: UnixTime(seconds: 1_797_292_800), by: "uid 0", why: "slow")
        )
        let rules = try configuration(Self.base).fileRules
        _ = try orders.take(.order(.observe, rule: "orders"), note: note, rules: rules)
        let difference = try difference(("percent: 25%", "percent: 50%"), orders: orders)
        expectEqual(
            difference.endpoints[0].lines.last,
            "by a command it is observe (2026-12-15T00:00:00Z, uid 0: slow)"
        )
    }

    @Test func `keys of other settings that differ come after the rules, with what they need`()
        throws
    {
        let difference = try difference(
            ("127.0.0.1:0", "127.0.0.1:1"),
            ("sqlite: p.db", "sqlite: q.db, expire_unused: 60d"),
            (
                "default: {",
                """
                timeouts: { head: 15s }
                limits: { addresses: 2048, http2: { pings: "off" } }
                enrolment: { percent: 5% }
                default: {
                """
            )
        )
        expectEqual(
            difference.text,
            """
            no endpoint changes
            settings
              listen: changed, which needs an upgrade or a restart
              store.sqlite: p.db → q.db, which needs a restart
              store.expire_unused: off → 60d
              enrolment.percent: changed
              timeouts.head: 10s → 15s
              limits.addresses: 65536 → 2048, which needs an upgrade or a restart
              limits.http2.pings: 120/m → off

            """
        )
    }

    @Test func `keys of origins, apps and proofs that differ are named with their values`() throws {
        let origins = try difference(
            ("servers: [\"s:80\"]", "servers: [\"t:80\"], retries: { max: 1 }"),
            ("media: {", "films: { servers: [\"f:80\"] }, media: {"),
            ("56.b, environments: [production]", "56.b, environments: [development]")
        )
        expectEqual(
            origins.settings.map(\.text),
            [
                "origins.shop.servers: s:80 → t:80", "origins.shop.retries.max: 0 → 1",
                "origins.films: added",
                "apps[TEAM123456.b].environments: production → development",
            ]
        )
        func proof(_ rest: String) throws -> GatewayConfiguration {
            try configuration(
                Self.base + """
                    proofs:
                      shop:
                        { kind: jwt, field: x-shop, keys: { url: "https://a.example/k" },
                          audience: shop, algorithms: [ES256], \(rest) }

                    """
            )
        }
        let changes = try proof("issuer: joe")
            .changes(to: proof("issuer: jane, leeway: 1m, on_error: forward"))
        expectEqual(
            changes.map(\.text),
            [
                "proofs.shop.on_error: refuse → forward", "proofs.shop.issuer: joe → jane",
                "proofs.shop.leeway: 30s → 1m",
            ]
        )
        let gone = try proof("issuer: joe").changes(to: configuration(Self.base))
        expectEqual(gone.map(\.text), ["proofs.shop: removed"])
    }

    @Test func `a listener's certificates are no difference that needs a restart`() throws {
        func listeners(_ tls: String) throws -> GatewayConfiguration {
            let text = Self.base.replacing("127.0.0.1:0\"", with: "127.0.0.1:0\", \(tls)")
            let files = ["c.pem": "", "k.pem": "", "d.pem": ""]
            return try #require(load(text, files: files).configuration)
        }
        let old = try listeners("tls: { certificate: c.pem, key: k.pem }")
        let new = try listeners("tls: { certificate: d.pem, key: k.pem, minimum: 1.3 }")
        expectEqual(old.changes(to: new), [])
        expectEqual(old.changes(to: try listeners("http2: on")).map(\.keyPath), [])
        expectEqual(old.changes(to: try listeners("http2: off")).map(\.needs), [.upgrade])
    }

    @Test func `these keys need more than a reload, and no other`() {
        let rows = ConfigurationSchema().rows
        func keys(_ need: String) -> [String] {
            rows.filter { $0.meaning.contains("A change needs \(need)") }.map(\.key)
        }
        expectEqual(
            keys("an upgrade or a restart."),
            ["listen", "admin", "event_loops", "challenges", "sessions", "limits.addresses"]
        )
        expectEqual(keys("a restart."), ["store.sqlite", "store.postgresql", "process"])
    }
}
