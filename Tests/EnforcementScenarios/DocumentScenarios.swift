import DeviceKey
import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// The JSON documents of commands, held against their schemas.
    @Suite struct Documents {
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              rollout: { percent: 25% }
              guard: { refused: 10%, of: installs, window: 1h, minimum: 20 }
              sign: [method, target]
            - id: open
              match: { path: /v1/open }
              mode: off
            - id: closed
              match: { path: /v1/closed }
              mode: deny
            """

        private static func scenario(_ rules: String = rules, more: String = "") throws -> Scenario
        {
            let scenario = try Scenario()
            let origin = try scenario.origin()
            try scenario.configure(
                origin: origin.address,
                rules: rules,
                more: "limits: { address_failures: off }\n" + more,
                origins: "  full: { servers: [{ address: \"127.0.0.1:9\", max_connections: 8 }] }"
            )
            try scenario.serveCalls()
            return scenario
        }

        /// Runs a command, whose standard output has to be one document of a schema.
        @discardableResult
        private static func document(
            _ schema: String,
            _ scenario: Scenario,
            _ words: [String],
            status: Int32 = 0
        ) throws -> SchemaValue {
            let done = try scenario.portcullis(words)
            expectEqual(done.status, status, "\(words): \(done)")
            let schema = try DocumentSchema(schema)
            expectEqual(try schema.faults(in: done.printed), [], "\(words)")
            return try SchemaValue.read(done.printed)
        }

        @Test func `check says what a configuration means, or what is wrong`() throws {
            let scenario = try Self.scenario()
            defer { scenario.end() }
            let file = scenario.path("portcullis.yaml")
            let good = try Self.document("check", scenario, ["check", file, "--json"])
            #expect(good["ok"] == .bool(true) && good["assumed"] == .list([]))
            let rules = good["rules"]?.list ?? []
            let ways = good["coverage"]?["rules"]?.list ?? []
            expectEqual(rules.compactMap { $0["id"] }.map { "\($0)" }.count, 4)
            #expect(rules.last?["match"] == .null && !ways.isEmpty)
            let text = try String(contentsOfFile: file, encoding: .utf8)
            try scenario.write("wrong.yaml", text.replacing("mode: enforce", with: "mode: enfroce"))
            let wrong = scenario.path("wrong.yaml")
            let words = ["check", wrong, "--json"]
            let refused = try Self.document("check", scenario, words, status: 1)
            #expect(refused["ok"] == .bool(false) && refused["rules"] == nil)
            let problems = refused["problems"]?.list ?? []
            #expect(problems.contains { $0["key"] == .text("orders.mode") })
        }

        @Test func `diff says what differs, and test what fails`() throws {
            let scenario = try Self.scenario()
            defer { scenario.end() }
            let file = scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let next = text.replacing("percent: 25%", with: "percent: 50%")
                .replacing("event_loops: 2", with: "event_loops: 3")
                .replacing("id: open", with: "id: opened")
            try scenario.write("next.yaml", next)
            let words = ["diff", file, scenario.path("next.yaml"), "--json"]
            let difference = try Self.document("diff", scenario, words)
            let rules = difference["rules"]?.list ?? []
            let settings = difference["settings"]?.list ?? []
            expectEqual(rules.compactMap { $0["id"] }.count, 3)
            expectEqual(settings.map { $0["needs"] }, [.text("upgrade")])
            try scenario.write("wrong.yaml", "listen: [")
            let refused = ["diff", file, scenario.path("wrong.yaml"), "--json"]
            let document = try Self.document("diff", scenario, refused, status: 1)
            expectEqual(document["ok"], .bool(false))

            try scenario.write(
                "cases.yaml",
                """
                - { request: "GET /v1/open", expect: { rule: open, mode: off } }
                - { request: "GET /v1/orders", expect: { rule: closed } }
                """
            )
            let cases = scenario.path("cases.yaml")
            let tested = ["test", file, cases, "--json"]
            let failed = try Self.document("test", scenario, tested, status: 1)
            #expect(failed["passed"] == .number(1) && failed["failed"] == .number(1))
            try scenario.write("cases.yaml", "- { request: 1 }")
            let unread = try Self.document("test", scenario, tested, status: 2)
            expectEqual(unread["results"], .list([]))
        }

        @Test func `rules, origins and keys of a running gateway are listed`() throws {
            let scenario = try Self.scenario()
            defer { scenario.end() }
            let config = ["--config", scenario.path("portcullis.yaml"), "--json"]
            // No gateway answers: what is printed is no document, and standard error says why.
            let without = try scenario.portcullis(["origins", "list"] + config)
            #expect(without.status == 1 && without.printed.isEmpty, "\(without)")
            let keys = try scenario.imported(3)
            let gateway = try scenario.serve()
            let client = gateway.client()
            try expectEqual(client.send("GET", "/v1/open").status, 200)
            let rules = try Self.document("rollout", scenario, ["rollout"] + config)
            let listed = rules["rules"]?.list ?? []
            #expect(listed.first?["rollout"] == .text("25% by key") && listed[0]["guard"] != nil)
            try Self.document("origins-list", scenario, ["origins", "list"] + config)
            let stored = try Self.document("keys-list", scenario, ["keys", "list"] + config)
            let records = stored["keys"]?.list ?? []
            let ids = Set(records.compactMap { $0["key_id"] })
            expectEqual(ids, Set(keys.map { SchemaValue.text($0.keyID.base64) }))
            let none = ["keys", "list", "--app-id", "none"] + config
            try expectEqual(Self.document("keys-list", scenario, none)["keys"], .list([]))
            for words in [
                ["orders", "observe"], ["orders", "file", "--yes"], ["--all", "observe"],
            ] {
                let order = ["rollout"] + words + config
                let change = try Self.document("rollout-change", scenario, order)
                expectEqual(change["rule"] == .null, words[0] == "--all", "\(change)")
            }
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `the gateways of a fleet are listed, and its orders without any`() throws {
            let fleet = try Fleet(
                2,
                rules: "- id: orders\n  match: { path: /v1/orders }\n  mode: enforce\n",
                takesOrders: true
            )
            defer { fleet.end() }
            #expect(try eventually { try Metrics(fleet.admin(0))["fleet_gateways"] == 2 })
            let config = ["--config", fleet.scenario.path("direct.yaml"), "--json"]
            let status = try Self.document(
                "fleet-status",
                fleet.scenario,
                ["fleet", "status"] + config
            )
            let gateways = status["gateways"]?.list ?? []
            expectEqual(gateways.map { $0["name"] }, [.text("g0"), .text("g1")])
            let order = ["rollout", "orders", "observe"] + config
            let change = try Self.document("rollout-change", fleet.scenario, order)
            expectEqual(change["fleet_order"], .number(1))
            let rules = try Self.document("rollout", fleet.scenario, ["rollout"] + config)
            let listed = rules["rules"]?.list ?? []
            expectEqual(listed.first?["mode"], .text("observe"))
        }

        /// A schema that took anything would hold nothing.
        @Test func `a document that lacks a member, has another or another type is refused`() throws
        {
            let names = try FileManager.default.contentsOfDirectory(
                atPath: DocumentSchema.folder.path
            ).filter { $0.hasSuffix(".schema.json") }
            expectEqual(names.count, 8)
            var definitions: [String: SchemaValue] = [:]
            for name in names {
                let schema = try DocumentSchema(name.replacing(".schema.json", with: ""))
                let required = schema.root["required"]?.texts ?? []
                #expect(!required.isEmpty)
                let faults = schema.faults(in: .object(["more": .null]))
                #expect(faults.contains(".more: not described"), "\(name): \(faults)")
                for member in required { #expect(faults.contains(".\(member): absent"), "\(name)") }
                #expect(!schema.faults(in: .list([])).isEmpty, "\(name)")
                // What several schemas define is the same in all of them.
                guard case .object(let own)? = schema.root["definitions"] else { continue }
                for (name, definition) in own {
                    expectEqual(definitions[name] ?? definition, definition, "\(name)")
                    definitions[name] = definition
                }
            }
        }
    }
}
