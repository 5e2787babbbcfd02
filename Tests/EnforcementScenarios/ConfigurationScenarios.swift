import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// Configurations that are wrong, and the commands that say what one means.
    @Suite struct Configurations {
        private static let rules = """
            - id: orders
              match: { method: [POST], path: /v1/orders }
              mode: enforce
              sign: [method, target, body, challenge]
            - id: files
              match: { path: /v1/files/** }
              mode: observe
              sign: [method, target]
            """

        private static let invalid = """
            listen:
              - address: 127.0.0.1:0
            origins:
              shop: { servers: [127.0.0.1:1] }
            apps:
              - { id: noprefix, environments: [production] }
            store: { sqlite: portcullis.db }
            default: { origin: shop, mode: sometimes }
            limits: { head: 12B }
            rules:
              - id: orders
                match: { path: /v1/** }
                mode: enforce
                rollout: { percent: 250% }
              - id: shadowed
                match: { path: /v1/orders }
                origin: shopp
                mode: off
                sign: content
            unknown: 1

            """

        @Test func `an invalid configuration starts nothing and names every problem`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.write("portcullis.yaml", Self.invalid)
            let file = scenario.path("portcullis.yaml")
            let served = try scenario.portcullis("serve", file)
            expectEqual(served.status, 1)
            expectEqual(served.printed, "")
            #expect(!served.complained.contains("listening"))
            #expect(served.complained.contains("nothing was started"))
            for line in [6, 8, 9, 14, 16, 17, 19, 20] {
                #expect(served.complained.contains("\(file):\(line): "), "line \(line)")
            }
            #expect(!FileManager.default.fileExists(atPath: scenario.path("portcullis.db")))

            let checked = try scenario.portcullis("check", file)
            expectEqual(checked.status, 1)
            for line in [6, 8, 9, 14, 16, 17, 19, 20] {
                #expect(checked.printed.contains("\(file):\(line): "), "line \(line)")
            }
            #expect(checked.printed.contains("refused, "))
            let explained = try scenario.portcullis("explain", file, "GET", "/v1/orders")
            expectEqual(explained.status, 1)
            #expect(explained.complained.contains("\(file):6: "))
            let listed = try scenario.portcullis("keys", "list", "--config", file)
            expectEqual(listed.status, 1)
        }

        @Test func `a configuration that is not there starts nothing`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let served = try scenario.portcullis("serve", scenario.path("absent.yaml"))
            expectEqual(served.status, 1)
            #expect(served.complained.contains("absent.yaml"))
            try expectEqual(scenario.portcullis("serve").status, 2)
            try expectEqual(scenario.portcullis("sreve", "x").status, 2)
        }

        @Test func `a reload that is invalid leaves the running configuration in place`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            let gateway = try scenario.serve()
            let client = gateway.client()
            try expectEqual(client.send("POST", "/v1/orders", content: [1]).status, 401)
            let good = try String(contentsOfFile: scenario.path("portcullis.yaml"), encoding: .utf8)
            try scenario.write("portcullis.yaml", good.replacing("observe", with: "obsserve"))
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "refused reload") { _, complained in
                complained.contains("the configuration is invalid") ? true : nil
            }
            #expect(gateway.child.complained.contains("portcullis.yaml:"))
            try expectEqual(client.send("POST", "/v1/orders", content: [1]).status, 401)
            let off = good.replacing("mode: enforce", with: "mode: observe")
            try scenario.write("portcullis.yaml", off)
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            try expectEqual(client.send("POST", "/v1/orders", content: [1]).status, 200)
        }

        @Test func `trials of fronts follow the endpoints that a reload has moved`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            let file = scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
                .replacing("127.0.0.1:0 }\nevent", with: "127.0.0.1:0, calls: any }\nevent")
            try scenario.write("portcullis.yaml", text)
            let gateway = try scenario.serve()
            func opened() throws -> String {
                let count = Array("1".utf8)
                return try gateway.adminClient().send("POST", "/trials/open", content: count).text
            }
            #expect(try opened().hasPrefix("/.well-known/app-attest-trial/\n"))
            try scenario.write("portcullis.yaml", text + "endpoints: /own\n")
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            #expect(try opened().hasPrefix("/own-trial/\n"))
        }

        @Test func `check, explain and test say what a configuration means`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            let file = scenario.path("portcullis.yaml")
            let checked = try scenario.portcullis("check", file)
            expectEqual(checked.status, 0)
            #expect(checked.printed.contains("ok, "))
            #expect(checked.printed.contains("a test app"))
            #expect(checked.printed.contains("orders: POST * /v1/orders → shop"))

            let explained = try scenario.portcullis("explain", file, "POST", "/v1/orders?dry=1")
            expectEqual(explained.status, 0)
            #expect(explained.printed.contains("orders"))
            let json = try scenario.portcullis("explain", file, "GET", "/v1/files/a", "--json")
            expectEqual(json.status, 0)
            let object = try JSONSerialization.jsonObject(with: Data(json.printed.utf8))
            #expect(object is [String: Any])
            #expect(json.printed.contains("files"))
            let malformed = try scenario.portcullis("explain", file, "GET", "/v1/files/a%2Fb")
            #expect(malformed.printed.contains("path-encoded-slash"), "\(malformed)")

            let cases = """
                - request: POST /v1/orders
                  expect: { rule: orders, mode: enforce, origin: shop }
                - request: GET /v1/files/a
                  expect: { rule: files, mode: observe, enforced: false }
                - request: GET /v1/files/a%2Fb
                  expect: { refused: path-encoded-slash }

                """
            try scenario.write("cases.yaml", cases)
            let tested = try scenario.portcullis("test", file, scenario.path("cases.yaml"))
            expectEqual(tested.status, 0)
            #expect(tested.printed.hasSuffix("3 of 3 pass\n"))
            try scenario.write(
                "cases.yaml",
                cases.replacing("rule: orders", with: "rule: files")
            )
            let failed = try scenario.portcullis("test", file, scenario.path("cases.yaml"))
            expectEqual(failed.status, 1)
            #expect(failed.printed.contains("rule is orders, expected files"))
            try scenario.write("cases.yaml", "- wrong: 1\n")
            let unreadable = try scenario.portcullis("test", file, scenario.path("cases.yaml"))
            expectEqual(unreadable.status, 2)
        }

        private static let commands = [
            "serve", "check", "explain", "test", "plan", "keys list", "keys show", "keys import",
            "keys export", "keys revoke", "verify attestation", "verify assertion",
            "verify receipt", "inspect attestation", "inspect assertion", "inspect receipt",
            "inspect challenge",
        ]

        /// `keys revoke --help` asked for `<key-i-ds>`.
        @Test(arguments: commands)
        func `help names what a command takes in whole words`(command: String) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let words = command.split(separator: " ").map(String.init) + ["--help"]
            let help = try scenario.portcullis(words)
            expectEqual(help.status, 0)
            let names = help.printed.matches(of: /<([^>]*)>/).map(\.output.1)
            #expect(!names.isEmpty)
            for name in names {
                #expect(name.split(separator: "-").allSatisfy { $0.count > 1 }, "<\(name)>")
            }
        }

        @Test(arguments: [
            (["chekc", "p.yaml"], "did you mean `portcullis check`?"),
            (["keys", "lst"], "did you mean `portcullis keys list`?"),
            (["keys", "gone"], "there are list, "), (["restart"], "there are serve, check, "),
            (["check", "--accept-older-stor", "p.yaml"], "--accept-older-store"),
        ])
        func `a mistyped command is answered by the nearest one`(
            _ words: [String],
            _ answer: String
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let result = try scenario.portcullis(words)
            expectEqual(result.status, 2)
            #expect(result.complained.contains(answer), "\(result)")
            expectEqual(result.printed, "")
        }

        /// Each command printed them, before what it was asked for.
        @Test func `warnings are those of check, at its end, and of no other command`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            let file = scenario.path("portcullis.yaml")
            let checked = try scenario.portcullis("check", file)
            expectEqual(checked.status, 0, "\(checked)")
            let lines = checked.printed.split(separator: "\n")
            let places = lines.indices.filter {
                lines[$0].hasPrefix("\(file):") && lines[$0].contains(": warning: ")
            }
            #expect(places.last == lines.endIndex - 2, "\(checked.printed)")
            expectEqual(Set(places.map { lines[$0] }).count, places.count)
            for command in [
                ["keys", "list", "--config", file], ["explain", file, "GET", "/v1/orders"],
                ["plan", file], ["diff", file, file],
            ] {
                let result = try scenario.portcullis(command)
                #expect(!result.complained.contains("warning: "), "\(result)")
            }
        }

        @Test(arguments: ["check", "doctor", "plan"])
        func `a configuration is an argument or an option, as for a running gateway`(
            command: String
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            let file = scenario.path("portcullis.yaml")
            try expectEqual(scenario.portcullis(command, file).status, 0)
            try expectEqual(scenario.portcullis(command, "--config", file).status, 0)
            try expectEqual(scenario.portcullis(command, "--config=\(file)").status, 0)
            let twice = try scenario.portcullis(command, file, "--config", file)
            #expect(twice.status != 0 && twice.complained.contains("once"), "\(twice)")
            let none = try scenario.portcullis(command)
            #expect(none.status != 0 && none.complained.contains("<file>"), "\(none)")
        }

        @Test func `serve and store migrate take the configuration as an option, too`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            let file = scenario.path("portcullis.yaml")
            let program = try #require(Scenario.program)
            let words = ["serve", "--config=\(file)"]
            let gateway = try GatewayProcess(try scenario.start(program, words))
            try expectEqual(gateway.client().send("GET", "/v1/files/a").status, 200)
            // The store is in use, by a process with the same file.
            let beside = try scenario.portcullis("serve", "--config", file)
            expectEqual(beside.status, 1)
            let holder = "(process \(gateway.child.identifier)), a gateway of this configuration"
            #expect(beside.complained.contains(holder), "\(beside)")
            // This store takes no tables: a command that says so has read the file.
            for words in [[file], ["--config", file], ["--config=\(file)"]] {
                let made = try scenario.portcullis(["store", "migrate"] + words)
                expectEqual(made.status, 1)
                #expect(made.complained.contains("names no store in PostgreSQL"), "\(made)")
            }
            for command in [["serve"], ["store", "migrate"]] {
                let twice = try scenario.portcullis(command + [file, "--config", file])
                #expect(twice.status != 0 && twice.complained.contains("once"), "\(twice)")
                let none = try scenario.portcullis(command)
                #expect(none.status != 0 && none.complained.contains("<file>"), "\(none)")
            }
        }

        /// What the gateway does is what `explain` says it does.
        @Test func `a request that explain refuses is refused with the same reason`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            let gateway = try scenario.serve()
            let file = scenario.path("portcullis.yaml")
            for path in ["/v1/files/a%2Fb", "/v1/files/%2e%2e/orders", "/v1/files/a%00b"] {
                let answer = try gateway.client().send("GET", path)
                expectEqual(answer.status, 400)
                let explained = try scenario.portcullis("explain", file, "GET", path)
                #expect(!answer.reason.isEmpty)
                #expect(explained.printed.contains(answer.reason), "\(path) \(explained.printed)")
            }
            #expect(origin.seen.isEmpty)
        }

        @Test func `explain and gateway agree about loops and the gateway's own paths`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            let gateway = try scenario.serve()
            let file = scenario.path("portcullis.yaml")
            let own = "/.well-known/app-attest/"
            for (method, target, via) in [
                ("GET", "/v1/files/a", "1.1 portcullis"), ("GET", own + "keys", "1.1 a"),
                ("POST", own + "key", "1.1 a"), ("POST", own, "1.1 a"),
            ] {
                let answer = try gateway.client().send(method, target, [("Via", via)])
                let field = "Via: " + via
                let said = try scenario.portcullis("explain", file, method, target, "-H", field)
                let expected = "refused with \(answer.status): \(answer.reason)\n"
                #expect(said.printed.contains(expected), "\(target) \(said.printed)")
            }
            #expect(origin.seen.isEmpty)
        }
    }
}
