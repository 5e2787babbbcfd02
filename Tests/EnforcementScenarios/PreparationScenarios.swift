import Cryptography
import DeviceKey
import Expectations
import Foundation
import GRDB
import LoopbackKit
import SoftwareAuthenticator
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
            name: String = "one",
            more: [String] = []
        ) throws {
            let openssl = try #require(Scenario.tool("openssl"))
            let arguments =
                ["req", "-x509", "-nodes", "-subj", "/CN=gateway.test", "-days", "90"]
                + ["-newkey"] + key + more
                + ["-keyout", scenario.path("\(name).key"), "-out", scenario.path("\(name).pem")]
            try expectEqual(scenario.run(openssl, arguments).status, 0)
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
                try expectEqual(scenario.run(openssl, arguments).status, 0)
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
            expectEqual(checked.status, 1)
            #expect(checked.printed.contains(problem), "\(checked.printed)")
            #expect(checked.printed.hasSuffix("refused, 1 error\n"))
            let served = try scenario.portcullis("serve", file)
            expectEqual(served.status, 1)
            #expect(served.complained.contains(problem), "\(served.complained)")
            #expect(!served.complained.contains("listening"))
        }

        @Test func `check warns of a certificate that demands an OCSP response`() throws {
            guard Scenario.tool("openssl") != nil else { return }
            let scenario = try Scenario()
            defer { scenario.end() }
            try Self.certificate(scenario, more: ["-addext", "tlsfeature=status_request"])
            try Self.configure(scenario)
            let file = scenario.path("portcullis.yaml")
            let checked = try scenario.portcullis("check", file)
            expectEqual(checked.status, 0)
            let warning =
                "\(file):2: warning: listen[0].tls.certificate: found a certificate that demands "
                + "an OCSP response"
            #expect(checked.printed.contains(warning), "\(checked.printed)")
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
                subject: .init(commonName: "gateway.test"),
                serial: 1,
                validity: Scenario.now.advanced(
                    bySeconds: -90 * 86_400
                )...Scenario.now.advanced(bySeconds: -3 * 86_400 - 3600),
                isAuthority: false
            ).selfSigned(by: try #require(key))
            try scenario.write("one.pem", ended.pem)
            try Self.configure(scenario)
            let file = scenario.path("portcullis.yaml")
            let warning =
                "\(file):2: warning: listen[0].tls.certificate: found a certificate that ended 3d "
                + "ago, which clients refuse"
            let checked = try scenario.portcullis("check", file)
            expectEqual(checked.status, 0)
            #expect(checked.printed.contains(warning), "\(checked.printed)")
            #expect(checked.printed.hasSuffix("ok, 2 warnings\n"))
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
            expectEqual(checked.status, 0)
            #expect(checked.printed.contains(warning), "\(checked.printed)")
            let gateway = try scenario.serve()
            #expect(gateway.child.complained.contains(warning))
            let admin = try gateway.adminClient()
            let metrics = try admin.send("GET", "/metrics").text
            #expect(metrics.contains("portcullis_origin_servers_unknown 1\n"))
            let labels = #"origin="shop",server="no-such-host.invalid:80",address="""#
            #expect(metrics.contains("portcullis_origin_server_up{\(labels)} 0\n"))
            let status = try admin.send("GET", "/status").object
            #expect(status?["unknown_servers"] as? [String] == ["no-such-host.invalid:80"])
            let readiness = try admin.send("GET", "/readyz")
            expectEqual(readiness.status, 503)
            expectEqual(readiness.reason, "servers-unknown")
            try expectEqual(gateway.stop(), 0)
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
            expectEqual(checked.status, 1)
            #expect(checked.printed.contains("store.sqlite: found "))
            #expect(checked.printed.contains("which is no SQLite database"))
        }

        /// What may have become of a store while no gateway runs.
        enum StoreFault: String, CaseIterable, Sendable {
            case foreign = "is a database of another program"
            case newer = "has tables of version 99"
            case damaged = "is damaged"
            case missing = "is missing or empty"
            case older = "is an older copy"

            func make(_ scenario: Scenario, _ database: String) throws {
                let files = FileManager.default
                switch self {
                case .foreign:
                    try files.removeItem(atPath: database)
                    let other = try DatabaseQueue(path: database)
                    try other.write { try $0.execute(sql: "CREATE TABLE notes (text TEXT)") }
                    try other.close()
                    try files.setAttributes([.posixPermissions: 0o600], ofItemAtPath: database)
                case .newer:
                    let queue = try DatabaseQueue(path: database)
                    try queue.write { try $0.execute(sql: "PRAGMA user_version = 99") }
                    try queue.close()
                case .damaged:
                    let file = try FileHandle(forUpdating: URL(filePath: database))
                    try file.seek(toOffset: 20 * 4_096)
                    try file.write(contentsOf: [UInt8](repeating: 0xA5, count: 4_096))
                    try file.close()
                case .missing: try files.removeItem(atPath: database)
                case .older:
                    let copy = scenario.path("copy")
                    try files.copyItem(atPath: database, toPath: copy)
                    _ = try scenario.imported()
                    try files.removeItem(atPath: database)
                    try files.moveItem(atPath: copy, toPath: database)
                }
            }
        }

        @Test(arguments: StoreFault.allCases)
        func `check refuses the stores that serve refuses, and touches none`(
            fault: StoreFault
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            let file = scenario.path("portcullis.yaml")
            let database = scenario.path("portcullis.db")
            // So many that there is a page in the middle to damage.
            _ = try scenario.imported(fault == .damaged ? 400 : 1)
            try expectEqual(scenario.serve().stop(), 0)
            try expectEqual(scenario.portcullis("check", file).status, 0)
            try fault.make(scenario, database)
            let names = try FileManager.default.contentsOfDirectory(atPath: scenario.folder.path)
            let checked = try scenario.portcullis("check", file)
            expectEqual(checked.status, 1)
            let problem = "store.sqlite: found \(database), which \(fault.rawValue)"
            #expect(checked.printed.contains(problem), "\(checked.printed)")
            let after = try FileManager.default.contentsOfDirectory(atPath: scenario.folder.path)
            expectEqual(Set(after), Set(names))
            let served = try scenario.portcullis("serve", file)
            expectEqual(served.status, 1)
            #expect(served.complained.contains(fault.rawValue), "\(served.complained)")
            guard [.missing, .older].contains(fault) else { return }
            let option = "--accept-older-store"
            try expectEqual(scenario.portcullis("check", option, file).status, 0)
            try expectEqual(scenario.serve(arguments: [option]).stop(), 0)
            try expectEqual(scenario.portcullis("check", file).status, 0)
        }

        @Test func `a store that must exist is not made, and one that is made is told of`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            let file = scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            try #require(text.contains("store: { "))
            let strict = text.replacing("store: { ", with: "store: { must_exist: true, ")
            try strict.write(toFile: file, atomically: true, encoding: .utf8)
            let checked = try scenario.portcullis("check", file)
            expectEqual(checked.status, 1)
            #expect(checked.printed.contains("store.must_exist is true"), "\(checked.printed)")
            let served = try scenario.portcullis("serve", file)
            expectEqual(served.status, 1)
            #expect(served.complained.contains("store.must_exist is true"))
            #expect(!FileManager.default.fileExists(atPath: scenario.path("portcullis.db")))

            try text.write(toFile: file, atomically: true, encoding: .utf8)
            let first = try scenario.serve()
            try expectEqual(Metrics(first.adminClient())["store_new"], 1)
            try expectEqual(first.complaints(of: "a new one without keys is made"), 1)
            try expectEqual(first.stop(), 0)
            try strict.write(toFile: file, atomically: true, encoding: .utf8)
            let second = try scenario.serve()
            try expectEqual(Metrics(second.adminClient())["store_new"], 0)
            try expectEqual(second.stop(), 0)
        }

        @Test(arguments: [".generation", "-wal", ".rollout", ".lock"])
        func `a store that is made beside what is left of an earlier one is warned of`(
            suffix: String
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            let orders = #"{"version":1,"rules":[]}"#
            try scenario.write("portcullis.db" + suffix, suffix == ".rollout" ? orders : "")
            // A generation without its database refuses a start that does not accept that.
            let option = suffix == ".generation" ? ["--accept-older-store"] : []
            let first = try scenario.serve(arguments: option)
            try expectEqual(Metrics(first.adminClient())["store_new"], 1)
            let warning = "/portcullis.db\(suffix) is left of one that was here; next: "
            try expectEqual(first.complaints(of: warning), 1)
            #expect(!first.child.complained.contains("there was none"))
            try expectEqual(first.stop(), 0)
            let second = try scenario.serve()
            try expectEqual(Metrics(second.adminClient())["store_new"], 0)
            #expect(!second.child.complained.contains("is left of one"))
            try expectEqual(second.stop(), 0)
        }

        @Test func `check beside a running gateway finds nothing wrong with its store`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (gateway, _, key) = try scenario.start(rules: Self.rules)
            let file = scenario.path("portcullis.yaml")
            try expectEqual(scenario.portcullis("check", file).status, 0)
            let id = key.keyID.base64
            try expectEqual(scenario.portcullis("keys", "revoke", "--config", file, id).status, 0)
            try expectEqual(scenario.portcullis("check", file).status, 0)
            try gateway.crash()
            try expectEqual(scenario.portcullis("check", file).status, 0)
        }

        @Test(.enabled(if: geteuid() == 0), arguments: ["store.sqlite", "log"])
        func `check run by root refuses what the user of the configuration can't write`(
            option: String
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let more = "process: { user: nobody }\nlog: { access: closed/access.log }"
            try scenario.configure(try scenario.origin(), rules: Self.rules, more: more)
            let files = FileManager.default
            let closed = option == "log" ? scenario.path("closed") : scenario.folder.path
            try files.createDirectory(
                atPath: scenario.path("closed"),
                withIntermediateDirectories: false,
                attributes: option == "log" ? [:] : [.posixPermissions: 0o777]
            )
            if option == "log" {
                let nobody = try #require(getpwnam("nobody")?.pointee.pw_uid)
                expectEqual(chown(scenario.folder.path, nobody, 0), 0)
            }
            let file = scenario.path("portcullis.yaml")
            let found =
                "\(option): found \(closed), which user 65534 can't write (Permission denied)"
            let checked = try scenario.portcullis("check", file)
            expectEqual(checked.status, 1)
            #expect(checked.printed.contains(found), "\(checked.printed)")
            let served = try scenario.portcullis("serve", file)
            expectEqual(served.status, 1)
            #expect(served.complained.contains(found), "\(served.complained)")
            #expect(!served.complained.contains("listening"))
        }

        @Test(arguments: ["portcullis.yaml", "nowhere/public.sock"])
        func `check refuses a Unix socket that serve can't make`(name: String) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (file, socket) = (scenario.path("portcullis.yaml"), scenario.path(name))
            try scenario.write(
                "portcullis.yaml",
                """
                listen:
                  - address: unix:\(socket)
                origins: { shop: { servers: ["127.0.0.1:9"] } }
                default: { origin: shop, mode: off }

                """
            )
            let checked = try scenario.portcullis("check", file)
            expectEqual(checked.status, 1)
            let found = "\(file):2: listen[0].address: found "
            #expect(checked.printed.contains(found), "\(checked.printed)")
            let served = try scenario.portcullis("serve", file)
            expectEqual(served.status, 1)
            #expect(served.complained.contains("can't listen on unix:\(socket): "))
        }

        @Test(arguments: ["check", "serve"])
        func `a folder in place of the access log is refused`(command: String) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let more = "log: { access: \(scenario.folder.path)/ }"
            try scenario.configure(try scenario.origin(), rules: Self.rules, more: more)
            let result = try scenario.portcullis(command, scenario.path("portcullis.yaml"))
            expectEqual(result.status, 1)
            let said = result.printed + result.complained
            #expect(said.contains("log: found \(scenario.folder.path)"), "\(said)")
            #expect(said.contains("which is a folder"), "\(said)")
        }
    }
}
