import ConfigurationReading
import Expectations
import Testing

@Suite struct InvalidConfigurationTests {
    /// A configuration without a problem: lines 1…5. Rows add lines from 6 on, or replace some.
    static let base = """
        listen: [{ address: "127.0.0.1:8080" }]
        origins: { shop: { servers: ["10.0.0.5:8080"] }, media: { servers: ["m:80"] } }
        apps: [{ id: TEAM123456.com.example.shop, environments: [production] }]
        store: { sqlite: p.db }
        default: { origin: shop, mode: observe }

        """

    struct Row: Sendable, CustomTestStringConvertible {
        let yaml: String
        let problem: String
        var testDescription: String { problem }

        /// Lines behind the base, from line 6 on.
        static func more(_ yaml: String, _ problem: String) -> Row {
            Row(yaml: base + yaml, problem: problem)
        }

        /// The base with one line changed.
        static func line(_ number: Int, _ yaml: String, _ problem: String) -> Row {
            var lines = base.split(separator: "\n", omittingEmptySubsequences: false).map(
                String.init
            )
            lines[number - 1] = yaml
            return Row(yaml: lines.joined(separator: "\n"), problem: problem)
        }

        /// One rule, its options on line 7.
        static func rule(_ options: String, _ problem: String) -> Row {
            more("rules:\n  - { id: a, match: { path: /a }, \(options) }\n", problem)
        }
    }

    @Test(
        arguments: general + addresses + apps + rules + routes + effects + policy + changedFields
            + syntax
    )
    func `is refused with place, finding and what is allowed`(row: Row) {
        let loaded = load(row.yaml)
        #expect(loaded.configuration == nil)
        let texts = loaded.errors.map(\.text)
        #expect(texts.contains { $0.hasPrefix(row.problem) }, "\(texts)")
        expectEqual(texts.count, 1, "\(texts)")
    }

    private static let general: [Row] = [
        .more("limit: {}", "p.yaml:6: limit: found an unknown key; use listen, admin, event_loops"),
        .more(
            "limits: { heads: 1KiB }",
            """
            p.yaml:6: limits.heads: found an unknown key; use head, target, trailers, \
            held_memory, held_disk, address_held, key_held, drain, endpoint_body, \
            question_message, fields, connections, pooled, interim_responses, addresses, \
            address_burst, address_connections, address_requests, address_calls, \
            address_failures, http2 (did you mean head?)
            """
        ),
        .more(
            "limits: { head: 12B }",
            """
            p.yaml:6: limits.head: found "12B"; use a size with its unit (B, KiB, MiB, GiB), \
            1KiB…1MiB
            """
        ),
        .more(
            "limits: { head: 16 }",
            "p.yaml:6: limits.head: found \"16\"; use a size with its unit"
        ),
        .more(
            "limits: { fields: 5 }",
            "p.yaml:6: limits.fields: found \"5\"; use a number, 10…1000"
        ),
        .more(
            "limits: { address_requests: 100 }",
            "p.yaml:6: limits.address_requests: found \"100\" without its unit; use 100/s"
        ),
        .more(
            "limits: { address_failures: 0/m }",
            "p.yaml:6: limits.address_failures: found \"0/m\"; use off, or 1/m…1000000/m"
        ),
        .more(
            "limits: { address_burst: 5 }",
            "p.yaml:6: limits.address_burst: found a burst without a rate; use address_requests"
        ),
        .more(
            "limits: { head: 4KiB }",
            "p.yaml:6: limits.head: found a target of 8KiB in a head of 4KiB; use a target smaller"
        ),
        .more(
            "timeouts: { head: 5 }",
            """
            p.yaml:6: timeouts.head: found "5"; use a time with its unit (ms, s, m, h, d), 1ms…7d
            """
        ),
        .more("timeouts: { idle: 8d }", "p.yaml:6: timeouts.idle: found \"8d\"; use a time"),
        .more(
            "timeouts: { body_minimum_rate: 64B }",
            "p.yaml:6: timeouts.body_minimum_rate: found \"64B\"; use bytes a second"
        ),
        .more("timeouts: [10s]", "p.yaml:6: timeouts: found a list; use a mapping with head"),
        .more("event_loops: 0", "p.yaml:6: event_loops: found \"0\"; use auto | 1…256"),
        .more(
            "event_loops: aut",
            "p.yaml:6: event_loops: found \"aut\"; use auto | 1…256 (did you mean auto?)"
        ),
        .more(
            "event_loops: 1\nevent_loops: 2",
            "p.yaml:6: event_loops: found the key twice in one mapping; use it once"
        ),
        .more(
            "challenges: { assertion_ttl: 5 }",
            "p.yaml:6: challenges.assertion_ttl: found \"5\"; use a time"
        ),
        .more(
            "sessions: { window: 63 }",
            "p.yaml:6: sessions.window: found \"63\"; use a number, 64…4096"
        ),
        .more(
            "sessions: { lifetime: 2d }",
            "p.yaml:6: sessions.lifetime: found \"2d\"; use a time with its unit"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"s:80\"], proxy_protocol: v1 } }",
            "p.yaml:2: origins.shop.proxy_protocol: found \"v1\"; use off | v2"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"s:80\"], http2: on, proxy_protocol: v2 } }",
            "p.yaml:2: origins.shop.proxy_protocol: found a PROXY header with http2: on, whose "
                + "connections carry many clients; use one of both"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"s:80\"], http2_streams: 5 } }",
            "p.yaml:2: origins.shop.http2_streams: found it without http2; use http2: on"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"s:80\"], check: { grpc: server } } }",
            "p.yaml:2: origins.shop.check.grpc: found it without http2; use http2: on"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"s:80\"], http2: on, check: { grpc: a, path: /b } } }",
            "p.yaml:2: origins.shop.check.path: found it and grpc; use one of both"
        ),
        .more(
            "sessions: { limit: 0 }",
            "p.yaml:6: sessions.limit: found \"0\"; use a number, 1…1000000"
        ),
        .more(
            "enrolment: { rate: 100 }",
            "p.yaml:6: enrolment.rate: found \"100\" without its unit; use 100/s"
        ),
        .more(
            "enrolment: { percent: 10%, from: 2026-12-01 }",
            "p.yaml:6: enrolment.from: found it beside percent; use either percent or all of"
        ),
        .more(
            "enrolment: { from: 2026-12-01, to: 2026-12-02, start: 1% }",
            "p.yaml:6: enrolment.end: found no such key; use it too"
        ),
        .more(
            "enrolment: { percent: 10 }",
            "p.yaml:6: enrolment.percent: found \"10\" without its unit; use 10%"
        ),
        .more(
            "log: { access: yes }",
            "p.yaml:6: log.access: found \"yes\"; use on | off | a file's path"
        ),
        .more(
            "log: { access: \"syslog:logs.example:514\" }",
            "p.yaml:6: log.access: found \"syslog:logs.example:514\"; use on | off | a file's path"
        ),
        .more(
            "log: { level: inof }",
            """
            p.yaml:6: log.level: found "inof"; use trace | debug | info | notice | warning | \
            error | critical (did you mean info?)
            """
        ),
        .more(
            "endpoints: /attest/",
            "p.yaml:6: endpoints: found \"/attest/\"; use a path of plain segments"
        ),
        .more(
            "spill_folder: nowhere",
            "p.yaml:6: spill_folder: found no such folder (nowhere); use a folder that exists"
        ),
        .more(
            "rules: nowhere",
            "p.yaml:6: rules: found no such folder; use a folder of *.yaml files"
        ),
        .more("rules: 5: 6", "p.yaml:6: found no YAML (mapping values are not allowed"),
        .line(
            5,
            "",
            """
            p.yaml:1: default: found no such key; use default: { mode: deny }, or one with an \
            origin
            """
        ),
        .line(
            5,
            "default: { origin: shop }",
            "p.yaml:5: default.mode: found no such key; use mode: off | observe | enforce"
        ),
        .line(
            5,
            "default: { mode: off }",
            "p.yaml:5: default.origin: found no such key; use origin: shop | media"
        ),
    ]

    private static let addresses: [Row] = [
        .line(
            1,
            "",
            "p.yaml:2: listen: found no such key; use listen: [{ address: 0.0.0.0:8443 }]"
        ),
        .line(1, "listen: []", "p.yaml:1: listen: found an empty list; use a list of listeners"),
        .line(1, "listen: [{}]", "p.yaml:1: listen[0].address: found no such key; use address:"),
        .line(
            1,
            "listen: [{ address: 8080 }]",
            """
            p.yaml:1: listen[0].address: found "8080"; use IP:port, [v6]:port or \
            unix:/absolute/path
            """
        ),
        .line(
            1,
            "listen: [{ address: \"localhost:80\" }]",
            "p.yaml:1: listen[0].address: found \"localhost:80\"; use IP:port"
        ),
        .line(
            1,
            "listen: [{ address: \"::1:80\" }]",
            "p.yaml:1: listen[0].address: found \"::1:80\"; use IP:port"
        ),
        .line(
            1,
            "listen: [{ address: \"127.0.0.1:65536\" }]",
            "p.yaml:1: listen[0].address: found \"127.0.0.1:65536\"; use IP:port"
        ),
        .line(
            1,
            "listen: [{ address: \"1.1.1.1:80\" }, { address: \"1.1.1.1:80\" }]",
            """
            p.yaml:1: listen[1].address: found 1.1.1.1:80, which is already at p.yaml:1; use \
            each address once
            """
        ),
        .line(
            1,
            "listen: [{ address: \"0.0.0.0:80\" }, { address: \"127.0.0.1:80\" }]",
            "p.yaml:1: listen[1].address: found 127.0.0.1:80, which 0.0.0.0:80 at p.yaml:1 includes"
        ),
        .line(
            1,
            "listen: [{ address: \"1.1.1.1:80\" }, { address: \"[::]:80\" }]",
            "p.yaml:1: listen[1].address: found [::]:80, which includes 1.1.1.1:80 at p.yaml:1"
        ),
        .line(
            1,
            "listen: [{ address: \"1.1.1.1:80\", proxy_protocol: true }]",
            """
            p.yaml:1: listen[0].proxy_protocol: found it without trusted_proxies, so that nobody \
            may connect; use trusted_proxies with the addresses of the proxies
            """
        ),
        .line(
            1,
            "listen: [{ address: \"1.1.1.1:80\", proxy_protocol: v2 }]",
            "p.yaml:1: listen[0].proxy_protocol: found \"v2\"; use true | false"
        ),
        .more(
            "admin: { address: \"127.0.0.1:8080\" }",
            "p.yaml:6: admin.address: found 127.0.0.1:8080, which is already at p.yaml:1"
        ),
        .line(
            1,
            "listen: [{ address: \"1.1.1.1:80\", tls: { key: k.pem, certificate: p.yaml } }]",
            "p.yaml:1: listen[0].tls.key: found no such file (k.pem); use a readable PEM file"
        ),
        .line(
            1,
            "listen: [{ address: \"1.1.1.1:80\", tls: { key: p.yaml } }]",
            "p.yaml:1: listen[0].tls.certificate: found no such key; use certificate: a PEM file"
        ),
        .line(
            1,
            """
            listen: [{ address: "1.1.1.1:80", tls: { key: p.yaml, certificate: p.yaml, minimum: \
            1.1 } }]
            """,
            "p.yaml:1: listen[0].tls.minimum: found \"1.1\"; use 1.2 | 1.3"
        ),
        .line(
            2,
            "origins: { shop: {} }",
            "p.yaml:2: origins.shop.servers: found no such key; use servers:"
        ),
        .line(
            2,
            "origins: { shop: { servers: [shop] } }",
            "p.yaml:2: origins.shop.servers[0]: found \"shop\"; use host:port"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"10.0.0.5:0\"] } }",
            "p.yaml:2: origins.shop.servers[0]: found \"10.0.0.5:0\"; use host:port"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"10.0.0.256:80\"] } }",
            "p.yaml:2: origins.shop.servers[0]: found \"10.0.0.256:80\"; use host:port"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"a:1\", \"A:1\"] } }",
            "p.yaml:2: origins.shop.servers[1]: found \"A:1\" again; use it once"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"a:1\", { address: \"a:1\", weight: 2 }] } }",
            "p.yaml:2: origins.shop.servers[1]: found \"a:1\" again; use it once"
        ),
        .line(
            2,
            "origins: { shop: { servers: [{ address: \"a:1\", weight: 0 }] } }",
            "p.yaml:2: origins.shop.servers[0].weight: found \"0\"; use a number, 1…1000"
        ),
        .line(
            2,
            "origins: { shop: { servers: [{ address: \"a:1\", max_connections: -1 }] } }",
            "p.yaml:2: origins.shop.servers[0].max_connections: found \"-1\"; use a number, 0…"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"a:1\"], queue: { max: 10001 } } }",
            "p.yaml:2: origins.shop.queue.max: found \"10001\"; use a number, 0…10000"
        ),
        .line(
            2,
            "origins: { shop: { servers: [{ weight: 2 }] } }",
            "p.yaml:2: origins.shop.servers[0].address: found no such key; use address:"
        ),
        .line(
            2,
            "origins: { shop: { servers: [{ address: \"a:1\", backup: true }] } }",
            "p.yaml:2: origins.shop.servers: found backups alone; use at least one server that"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"a:1\"], balance: hash } }",
            "p.yaml:2: origins.shop.balance: found \"hash\"; use round-robin | least-requests"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"a:1\"], eject: { time: 1h } } }",
            "p.yaml:2: origins.shop.eject.time_max: found 5m, which is less than time, 1h; use at"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"a:1\"], eject: { share: 101% } } }",
            "p.yaml:2: origins.shop.eject.share: found \"101%\"; use a whole percentage"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"a:1\"], check: { host: b } } }",
            "p.yaml:2: origins.shop.check.path: found no such key; use path: /health"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"a:1\"], check: { path: /h, status: 100 } } }",
            "p.yaml:2: origins.shop.check.status: found \"100\"; use a status or two"
        ),
        .line(
            2,
            "origins: { shop: { servers: [\"a:1\"], host: \"http://x\" } }",
            "p.yaml:2: origins.shop.host: found \"http://x\"; use client | a host name"
        ),
        .more(
            "trusted_proxies: [10.0.0.1/8]",
            "p.yaml:6: trusted_proxies[0]: found \"10.0.0.1/8\"; use networks such as 10.0.0.0/8"
        ),
        .more(
            "trusted_proxies: [10.0.0.0/33]",
            "p.yaml:6: trusted_proxies[0]: found \"10.0.0.0/33\"; use networks"
        ),
        .more(
            "client_address: forwarded",
            """
            p.yaml:6: client_address: found it without trusted_proxies; use trusted_proxies \
            beside it
            """
        ),
    ]

    private static let apps: [Row] = [
        .line(3, "", "p.yaml:1: apps: found no apps, while p.yaml:5 verifies; use apps:"),
        .line(
            3,
            "apps: [{ id: shop, environments: [production] }]",
            "p.yaml:3: apps[0].id: found \"shop\"; use an App ID: prefix, dot, bundle identifier"
        ),
        .line(
            3,
            "apps: [{ id: com.example.shop, environments: [production] }]",
            """
            p.yaml:3: apps[0].id: found "com.example.shop" without the prefix of a team; use ten \
            capital letters and digits before it, as in ABCDE12345.com.example.app
            """
        ),
        .line(
            3,
            "apps: [{ id: abcde12345.com.example.shop, environments: [production] }]",
            "p.yaml:3: apps[0].id: found \"abcde12345.com.example.shop\" without the prefix"
        ),
        .line(
            3,
            "apps: [{ id: TEAM123456.a }]",
            "p.yaml:3: apps[0].environments: found no such key; use environments: [production]"
        ),
        .line(
            3,
            "apps: [{ id: TEAM123456.a, environments: [prodution] }]",
            """
            p.yaml:3: apps[0].environments[0]: found "prodution"; use production, development, \
            test (did you mean production?)
            """
        ),
        .line(
            3,
            """
            apps: [{ id: TEAM123456.a, environments: [test] }, { id: TEAM123456.b, \
            environments: [production] }]
            """,
            "p.yaml:3: apps[0].test_root: found no such key; use test_root:"
        ),
        .line(
            3,
            """
            apps: [{ id: TEAM123456.a, environments: [test], test_root: p.yaml }, \
            { id: TEAM123456.b, environments: [production] }]
            """,
            "p.yaml:3: apps[0].test_root: found no certificate in p.yaml; use a PEM file"
        ),
        .line(
            3,
            "apps: [{ id: TEAM123456.a, environments: [production], test_root: p.yaml }]",
            """
            p.yaml:3: apps[0].test_root: found it without the environment test; use \
            environments: [test]
            """
        ),
        .line(
            3,
            """
            apps: [{ id: TEAM123456.a, environments: [production] }, \
            { id: TEAM123456.a, environments: [development] }]
            """,
            """
            p.yaml:3: apps[1].id: found TEAM123456.a, which is already at p.yaml:3; use each App \
            ID once
            """
        ),
        .line(
            3,
            """
            apps: [{ id: TEAM123456.a, environments: [production], \
            validation_categories: [appstore] }]
            """,
            """
            p.yaml:3: apps[0].validation_categories[0]: found "appstore"; use operating-system, \
            test-flight, development, app-store, enterprise, developer-id, other (did you mean \
            app-store?)
            """
        ),
        .line(
            3,
            "apps: [{ id: TEAM123456.a, environments: [production], client_data_hash: sha-256 }]",
            """
            p.yaml:3: apps[0].client_data_hash: found "sha-256"; use sha256 | raw (did you mean \
            sha256?)
            """
        ),
        .line(
            4,
            "",
            """
            p.yaml:1: store: found no store, while there are apps; use store: { sqlite: \
            portcullis.db }
            """
        ),
        .line(
            4,
            "store: { sqlite: nowhere/p.db }",
            "p.yaml:4: store.sqlite: found no such folder (nowhere); use a folder that exists"
        ),
    ]

    @Test func `all problems are reported at once, in the order of the lines`() {
        let loaded = load(
            """
            listen: [{ address: here }]
            origins: { shop: { servers: ["10.0.0.5:8080"] } }
            default: { origin: shpo, mode: off }
            event_loops: 1000
            event_loops: many
            rules:
              - { id: a, mode: enforce, match: { path: a } }
              - { id: a, mode: of }
            """
        )
        let lines = loaded.errors.map(\.place.line)
        expectEqual(lines, [1, 1, 3, 4, 5, 7, 8, 8, 8])
        #expect(loaded.configuration == nil)
    }

    @Test func `production beside test is refused`() {
        let text = Self.base.replacing(
            "[production]",
            with: "[production, test], test_root: ca.pem"
        )
        let texts = load(text).problems.map(\.text)
        #expect(
            texts.contains { $0.contains("apps[0].environments: found test beside production") }
        )
    }
}
