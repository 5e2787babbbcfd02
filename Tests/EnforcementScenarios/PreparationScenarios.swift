import Cryptography
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// What a start needs of the machine: `check` sees it as `serve` does.
    @Suite struct Preparations {
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              sign: [method, target]
            """

        /// A certificate and its key, made by `openssl`.
        private static func certificate(
            _ scenario: Scenario,
            key: [String] = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
            name: String = "one"
        ) throws {
            let openssl = try #require(Scenario.tool("openssl"))
            let arguments =
                ["req", "-x509", "-nodes", "-subj", "/CN=gateway.test", "-days", "90"]
                + ["-newkey"] + key
                + ["-keyout", scenario.path("\(name).key"), "-out", scenario.path("\(name).pem")]
            #expect(try scenario.run(openssl, arguments).status == 0)
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o600],
                ofItemAtPath: scenario.path("\(name).key")
            )
        }

        /// A configuration with TLS, of which line 2 is the listener.
        private static func configure(
            _ scenario: Scenario,
            certificate: String = "one.pem",
            key: String = "one.key",
            server: String = "127.0.0.1:9"
        ) throws {
            try scenario.write(
                "portcullis.yaml",
                """
                listen:
                  - { address: 127.0.0.1:0, tls: { certificate: \(certificate), key: \(key) } }
                admin: { address: 127.0.0.1:0 }
                origins: { shop: { servers: ["\(server)"] } }
                default: { origin: shop, mode: off }

                """
            )
        }

        private static func makeFault(_ kind: String, _ scenario: Scenario) throws {
            let openssl = try #require(Scenario.tool("openssl"))
            let weak = ["rsa:1024"]
            try certificate(scenario, key: kind == "certificate-weak" ? weak : ["rsa:2048"])
            switch kind {
            case "key-mismatch":
                try certificate(scenario, name: "two")
                try configure(scenario, key: "two.key")
            case "key-encrypted":
                let arguments = [
                    "pkey", "-in", scenario.path("one.key"), "-aes128", "-passout", "pass:x",
                    "-out", scenario.path("locked.key"),
                ]
                #expect(try scenario.run(openssl, arguments).status == 0)
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o600],
                    ofItemAtPath: scenario.path("locked.key")
                )
                try configure(scenario, key: "locked.key")
            case "certificate-unreadable":
                try scenario.write("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n")
                try configure(scenario, certificate: "broken.pem")
            default: try configure(scenario)
            }
        }

        @Test(arguments: [
            ("key-mismatch", "key"), ("key-encrypted", "key"),
            ("certificate-unreadable", "certificate"), ("certificate-weak", "certificate"),
        ])
        func `check refuses the certificates and keys that serve refuses`(
            kind: String,
            option: String
        ) throws {
            guard Scenario.tool("openssl") != nil else { return }
            let scenario = try Scenario()
            defer { scenario.end() }
            try Self.makeFault(kind, scenario)
            let file = scenario.path("portcullis.yaml")
            let problem = "\(file):2: listen[0].tls.\(option): found \(kind): "
            let checked = try scenario.portcullis("check", file)
            #expect(checked.status == 1)
            #expect(checked.printed.contains(problem), "\(checked.printed)")
            #expect(checked.printed.hasSuffix("refused, 1 error\n"))
            let served = try scenario.portcullis("serve", file)
            #expect(served.status == 1)
            #expect(served.complained.contains(problem), "\(served.complained)")
            #expect(!served.complained.contains("listening"))
        }

        @Test func `a certificate that has ended is served with a warning, as check says`() throws {
            guard Scenario.tool("openssl") != nil else { return }
            let scenario = try Scenario()
            defer { scenario.end() }
            try Self.certificate(scenario)
            let key = ECPrivateKey(
                pem: try String(contentsOfFile: scenario.path("one.key"), encoding: .utf8)
            )
            let ended = CertificateBuilder(
                commonName: "gateway.test",
                serial: 1,
                notBefore: Scenario.now.advanced(bySeconds: -90 * 86_400),
                notAfter: Scenario.now.advanced(bySeconds: -3 * 86_400 - 3600),
                isAuthority: false
            ).selfSigned(by: try #require(key))
            try scenario.write("one.pem", ended.pem)
            try Self.configure(scenario)
            let file = scenario.path("portcullis.yaml")
            let warning =
                "\(file):2: warning: listen[0].tls.certificate: found a certificate that ended 3d "
                + "ago, which clients refuse"
            let checked = try scenario.portcullis("check", file)
            #expect(checked.status == 0)
            #expect(checked.printed.contains(warning), "\(checked.printed)")
            #expect(checked.printed.hasSuffix("ok, 1 warning\n"))
            let gateway = try scenario.serve()
            #expect(gateway.child.complained.contains(warning))
        }

        /// A name that nobody has (RFC 6761 §6.4), and no server that could be asked for it.
        @Test func `an origin that does not resolve is a warning, and stops no start`() throws {
            guard Scenario.tool("openssl") != nil else { return }
            let scenario = try Scenario()
            defer { scenario.end() }
            try Self.certificate(scenario)
            try Self.configure(scenario, server: "no-such-host.invalid:80")
            let file = scenario.path("portcullis.yaml")
            let warning =
                "\(file):4: warning: origins.shop.servers[0]: found no-such-host.invalid:80, "
            let checked = try scenario.portcullis("check", file)
            #expect(checked.status == 0)
            #expect(checked.printed.contains(warning), "\(checked.printed)")
            let gateway = try scenario.serve()
            #expect(gateway.child.complained.contains(warning))
            let admin = try gateway.adminClient()
            let metrics = try admin.send("GET", "/metrics").text
            #expect(metrics.contains("portcullis_origin_servers_unknown 1\n"))
            let status = try admin.send("GET", "/status").object
            #expect(status?["unknown_servers"] as? [String] == ["no-such-host.invalid:80"])
            let readiness = try admin.send("GET", "/readyz")
            #expect(readiness.status == 503)
            #expect(readiness.reason == "servers-unknown")
            #expect(try gateway.stop() == 0)
        }

        @Test func `a file that is no database is no store`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            try scenario.write("portcullis.db", "no database at all, and longer than its header\n")
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o600],
                ofItemAtPath: scenario.path("portcullis.db")
            )
            let checked = try scenario.portcullis("check", scenario.path("portcullis.yaml"))
            #expect(checked.status == 1)
            #expect(checked.printed.contains("store.sqlite: found "))
            #expect(checked.printed.contains("which is no SQLite database"))
        }
    }
}
