import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// A configuration on a machine that lacks the gateway's secrets, and variables.
    @Suite struct Offline {
        private static let text = """
            listen:
              - { address: "127.0.0.1:0", tls: { certificate: tls/a.pem, key: tls/a.key } }
            admin: { address: "unix:/nowhere/portcullis/admin.sock" }
            origins: { shop: { servers: ["${SHOP_HOST}:8080", "shop.invalid:80"] } }
            apps: [{ id: ABCDE12345.com.example.shop, environments: [production] }]
            store: { sqlite: /nowhere/lib/keys.db, must_exist: true }
            log: { access: /nowhere/log/access.log }
            process: { user: no-such-user }
            default: { mode: deny }
            rules: rules/
            """

        private static func scenario(_ text: String = text) throws -> Scenario {
            let scenario = try Scenario()
            try FileManager.default.createDirectory(
                atPath: scenario.path("rules"),
                withIntermediateDirectories: true
            )
            try scenario.write("p.yaml", text)
            try scenario.write(
                "rules/1.yaml",
                "- { id: orders, match: { path: /v1/orders }, origin: shop, mode: enforce }"
            )
            return scenario
        }

        @Test func `check needs no secret, looks up no name, and names what it assumes`() throws {
            let scenario = try Self.scenario()
            defer { scenario.end() }
            let file = scenario.path("p.yaml")
            let checked = try scenario.portcullis("check", "--offline", file)
            expectEqual(checked.status, 0, "\(checked)")
            for assumed in [
                "\(scenario.path("tls/a.pem")) (listen[0].tls.certificate)",
                "\(scenario.path("tls/a.key")) (listen[0].tls.key)",
                "${SHOP_HOST} (origins.shop.servers[0])", "no-such-user (process.user)",
                "/nowhere/portcullis (admin.address)", "/nowhere/lib (store.sqlite)",
                "/nowhere/log (log.access)",
            ] {
                #expect(checked.printed.contains("\nassumed: \(assumed)\n"), "\(checked.printed)")
            }
            let end = checked.printed.split(separator: "\n").last ?? ""
            #expect(end.hasSuffix("p.yaml: ok, 0 warnings, 7 assumed"), "\(end)")
            #expect(checked.printed.contains("  orders: * * /v1/orders → shop, enforce"))
            let document = try scenario.portcullis("check", "--offline", "--json", file)
            try expectEqual(DocumentSchema("check").faults(in: document.printed), [])
            let strict = try scenario.portcullis("check", file)
            expectEqual(strict.status, 1)
            #expect(strict.printed.contains("found ${SHOP_HOST}, which is not set; use SHOP_HOST"))
            #expect(!strict.printed.contains("assumed"))
        }

        @Test func `the other commands answer, and name it on standard error`() throws {
            let scenario = try Self.scenario()
            defer { scenario.end() }
            let file = scenario.path("p.yaml")
            try scenario.write(
                "cases.yaml",
                "- { request: \"GET /v1/orders\", expect: { rule: orders, origin: shop } }"
            )
            let cases = scenario.path("cases.yaml")
            for (words, start) in [
                (["test", file, cases], "ok   "), (["explain", file, "GET", "/v1/orders"], "GET "),
                (["diff", file, file], "no endpoint changes\n"), (["plan", file], "{\n"),
            ] {
                let done = try scenario.portcullis(words + ["--offline"])
                expectEqual(done.status, 0, "\(words): \(done)")
                #expect(done.printed.hasPrefix(start), "\(words): \(done.printed)")
                #expect(!done.printed.contains("assumed"), "\(words)")
                let named = done.complained.split(separator: "\n")
                #expect(named.allSatisfy { $0.hasPrefix("assumed: ") }, "\(words): \(named)")
                expectEqual(Set(named).count, named.count)
                #expect(named.contains { $0.hasSuffix("(listen[0].tls.key)") }, "\(words)")
                try expectEqual(scenario.portcullis(words).status, 1, "\(words)")
            }
            // A mistake is one, offline too.
            try scenario.write("p.yaml", Self.text.replacing("mode: deny", with: "mode: dney"))
            let wrong = try scenario.portcullis("check", "--offline", file)
            expectEqual(wrong.status, 1)
            #expect(wrong.printed.contains("default.mode: found \"dney\""))
        }

        @Test func `a certificate that is there is examined without its key`() throws {
            let scenario = try Self.scenario()
            defer { scenario.end() }
            let openssl = try #require(Scenario.tool("openssl"))
            let folder = scenario.path("tls")
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true
            )
            let arguments = [
                "req", "-x509", "-nodes", "-subj", "/CN=a", "-days", "2", "-newkey", "ec",
                "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", "\(folder)/b.key", "-out",
                "\(folder)/a.pem",
            ]
            try expectEqual(scenario.run(openssl, arguments).status, 0)
            let file = scenario.path("p.yaml")
            let ending = try scenario.portcullis("check", "--offline", file)
            #expect(ending.status == 0 && ending.printed.contains("a certificate that ends in"))
            #expect(ending.printed.contains("0 assumed") == false, "\(ending.printed)")
            try scenario.write("tls/a.pem", "no certificate")
            let wrong = try scenario.portcullis("check", "--offline", file)
            #expect(wrong.status == 1 && wrong.printed.contains("no certificate in "), "\(wrong)")
        }

        @Test func `a gateway takes addresses and paths from its environment`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let folder = scenario.path("origins")
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true
            )
            try scenario.write("origins/1.yaml", "shop: { servers: [\"${SHOP}\"] }")
            try scenario.write(
                "portcullis.yaml",
                """
                listen:
                \(try ClientSide.current.listeners())
                admin: { address: "unix:${FOLDER}/admin.sock" }
                event_loops: 2
                origins: "${FOLDER}/origins"
                default: { origin: shop, mode: off }
                """
            )
            let set = [
                "/usr/bin/env", "SHOP=\(origin.address)", "FOLDER=\(scenario.folder.path)",
            ]
            let gateway = try scenario.serve(within: set)
            try expectEqual(gateway.client().send("GET", "/").status, 200)
            // A reload reads the folder and the environment again.
            try scenario.write("origins/2.yaml", "shop: { servers: [\"${SHOP}\"] }")
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "refused reload") { _, complained in
                complained.contains("origins/2.yaml:1: origins.shop: found shop, which is")
                    ? true : nil
            }
            try scenario.write("origins/2.yaml", "more: { servers: [\"${SHOP}\"] }")
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            let program = try #require(Scenario.program)
            let words =
                Array(set.dropFirst()) + [
                    program, "origins", "list", "--config", scenario.path("portcullis.yaml"),
                ]
            let listed = try scenario.run(set[0], words)
            #expect(listed.printed.hasPrefix("shop\t\(origin.address)\tup"), "\(listed)")
            #expect(listed.printed.contains("\nmore\t\(origin.address)\t"), "\(listed)")
            // A command needs the variables, too.
            let unset = try scenario.portcullis(
                "origins",
                "list",
                "--config",
                words[words.count - 1]
            )
            #expect(unset.status == 1 && unset.complained.contains("${FOLDER}, which is not set"))
        }
    }
}
