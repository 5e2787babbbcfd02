import AppAttest
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// The commands about keys, beside a running gateway and without one.
    @Suite struct KeyCommands {
        private static let rules = StockRule.list(.bare)

        private static let request = SoftwareKey.Request(method: "GET", target: "/v1/bare")

        private func send(_ client: HTTPClient, _ key: inout SoftwareKey) throws -> Answer {
            try client.send(raw: key.get(Self.request.target))
        }

        @Test func `a restored key passes at once, and a deleted one is unknown for good`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var key = try scenario.imported(1)[0]
            let gateway = try scenario.serve()
            let client = gateway.client()
            let id = key.keyID.base64
            func keys(_ command: String, _ more: String...) throws -> Scenario.Result {
                try scenario.portcullis(
                    ["keys", command, "--config", scenario.path("portcullis.yaml")] + more
                )
            }
            let early = key.get(Self.request.target)
            try expectEqual(client.send(raw: early).status, 200)
            try expectEqual(keys("revoke", "--why", "reported stolen", id).status, 0)
            try expectEqual(send(client, &key).reason, "key-revoked")
            try expectEqual(keys("restore", "--why", "found again", id).printed, "\(id) restored\n")
            try expectEqual(send(client, &key).status, 200)
            try expectEqual(client.send(raw: early).reason, "counter-replayed")
            try expectEqual(keys("restore", id).printed, "\(id) is not revoked\n")
            try expectEqual(keys("delete", id).printed, "\(id) deleted\n")
            try expectEqual(send(client, &key).reason, "key-unknown")
            #expect(try keys("delete", id).printed.hasPrefix("\(id) was deleted at "))
            // What is left of it is in exports alone.
            let text = try keys("show", "--json", id).printed
            #expect(text.hasPrefix(#"{"status":"deleted","deleted_at":"20"#), "\(text)")
            #expect(!text.contains("erased"), "\(text)")
            #expect(try !keys("show", id).printed.contains("erased"))
            #expect(try keys("export").printed.contains(#""erased_under":""#))
            try expectEqual(keys("restore", id).status, 1)
            try expectEqual(gateway.enrol(key, gateway.client()).reason, "key-revoked")
            try expectEqual(keys("history", id).printed, "")
            let history = try keys("history").printed.split(separator: "\n").map {
                $0.split(separator: "\t").map(String.init)
            }
            expectEqual(history.map { $0[1] }, ["deleted", "restored", "revoked"])
            expectEqual(history.map { $0[4] }, ["-", "found again", "reported stolen"])
            #expect(history.allSatisfy { $0[2] == "an erased key" })
            #expect(history.allSatisfy { $0[3].contains("uid \(getuid())") })
            try expectEqual(keys("delete").status, 2)
            try expectEqual(keys("delete", "--unused", "29d").status, 2)
            try expectEqual(
                keys("delete", "--unused", "30d").printed,
                "0 deleted, unused for 30d\n"
            )
            try expectEqual(keys("revoke", "--why", "two\nlines", id).status, 2)
            // Also behind the next start.
            try gateway.crash()
            try expectEqual(send(try scenario.serve().client(), &key).reason, "key-unknown")
        }

        @Test func `keys that were not used for long are deleted by the gateway, and audited`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            // The text goes between quotation marks.
            let store = #"portcullis.db", expire_unused: "30d"#
            try scenario.configure(
                origin: "127.0.0.1:\(origin.port)",
                rules: Self.rules,
                store: store
            )
            var keys = (0..<2).map { _ in Scenario.device.makeKey() }
            let times = #","enrolled_at":"2020-01-02T03:04:05Z"}"#
            let old = keys[0].importLine(as: .test).dropLast() + times
            try scenario.write("keys.jsonl", old + "\n" + keys[1].importLine(as: .test) + "\n")
            let config = scenario.path("portcullis.yaml")
            let imported = try scenario.portcullis(
                ["keys", "import", "--config", config, scenario.path("keys.jsonl")]
            )
            expectEqual(imported.status, 0, "\(imported)")
            let gateway = try scenario.serve()
            let (admin, client) = (try gateway.adminClient(), gateway.client())
            try gateway.waitUntil("an expiry", admin) { $0["keys_expired_total"] == 1 }
            try expectEqual(send(client, &keys[0]).reason, "key-unknown")
            try expectEqual(send(client, &keys[1]).status, 200)
            let history = try scenario.portcullis("keys", "history", "--config", config).printed
            #expect(history.contains("expired"))
            #expect(history.contains("store.expire_unused"))
            try expectEqual(gateway.complaints(of: "not used for 30 days: 1"), 1)
        }

        @Test func `a key is refused from the moment in which revoke has returned`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var keys = try scenario.imported(8)
            let gateway = try scenario.serve()
            // A connection to each event loop, most likely: the listeners share the port.
            let clients = (0..<8).map { _ in gateway.client() }
            let config = scenario.path("portcullis.yaml")
            for number in keys.indices {
                let client = clients[number % clients.count]
                try expectEqual(send(client, &keys[number]).status, 200)
                let id = keys[number].keyID.base64
                let revoked = try scenario.portcullis("keys", "revoke", "--config", config, id)
                expectEqual(revoked.status, 0)
                expectEqual(revoked.printed, "\(id) revoked\n")
                for client in clients {
                    let answer = try send(client, &keys[number])
                    expectEqual(answer.status, 403)
                    expectEqual(answer.reason, "key-revoked")
                }
            }
            expectEqual(origin.seen.count, keys.count)

            let id = keys[0].keyID.base64
            let again = try scenario.portcullis("keys", "revoke", "--config", config, id)
            expectEqual(again.status, 0)
            #expect(again.printed.hasPrefix("\(id) was revoked at "))
            let stranger = Scenario.device.makeKey().keyID.base64
            let unknown = try scenario.portcullis("keys", "revoke", "--config", config, stranger)
            expectEqual(unknown.status, 1)
            #expect(unknown.complained.hasSuffix("\(stranger) is not stored\n"))
            let wrong = try scenario.portcullis("keys", "revoke", "--config", config, "AAAA")
            expectEqual(wrong.status, 2)

            // It stays so over a crash.
            try gateway.crash()
            let next = try scenario.serve()
            try expectEqual(send(next.client(), &keys[0]).reason, "key-revoked")
            // And by no new enrolment.
            let enrolled = try next.enrol(keys[0], next.client())
            expectEqual(enrolled.status, 403)
            expectEqual(enrolled.reason, "key-revoked")
        }

        @Test func `keys imported beside a running gateway are known at once`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            let gateway = try scenario.serve()
            let client = gateway.client()
            var stranger = Scenario.device.makeKey()
            try expectEqual(send(client, &stranger).reason, "key-unknown")
            var keys = try scenario.imported(3)
            for number in keys.indices {
                try expectEqual(send(client, &keys[number]).status, 200)
            }
        }

        @Test func `a command about keys after a reload does not take the store away`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            var keys = try scenario.imported(1)
            let gateway = try scenario.serve()
            try expectEqual(gateway.client().send(raw: keys[0].get("/v1/bare")).status, 200)
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            let config = scenario.path("portcullis.yaml")
            try expectEqual(scenario.portcullis("keys", "list", "--config", config).status, 0)
            // The gateway looks at its files when it commits: the first request may still pass.
            for _ in 0..<3 {
                let answer = try gateway.client().send(raw: keys[0].get("/v1/bare"))
                expectEqual(answer.status, 200, "\(answer.reason)")
            }
            try expectEqual(
                scenario.portcullis("keys", "revoke", "--config", config, keys[0].keyID.base64)
                    .status,
                0
            )
            try expectEqual(
                gateway.client().send(raw: keys[0].get("/v1/bare")).reason,
                "key-revoked"
            )
        }

        @Test func `revoke takes the short name that the log shows`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var keys = try scenario.imported(2)
            let gateway = try scenario.serve()
            let client = gateway.client()
            try expectEqual(send(client, &keys[0]).status, 200)
            let name = try #require(try gateway.line(about: Self.request.target)["key"] as? String)
            let config = scenario.path("portcullis.yaml")
            let revoked = try scenario.portcullis("keys", "revoke", "--config", config, name)
            expectEqual(revoked.status, 0, "\(revoked)")
            expectEqual(revoked.printed, "\(keys[0].keyID.base64) revoked\n")
            try expectEqual(send(client, &keys[0]).reason, "key-revoked")
            try expectEqual(send(client, &keys[1]).status, 200)

            let stranger = "000000000000"
            let absent = try scenario.portcullis("keys", "revoke", "--config", config, stranger)
            expectEqual(absent.status, 1)
            #expect(absent.complained.contains("\(stranger) is not stored"))
            for wrong in ["AAAA", "abc", "0123456789abc", name.uppercased() + "G"] {
                let refused = try scenario.portcullis("keys", "revoke", "--config", config, wrong)
                expectEqual(refused.status, 2)
                #expect(refused.complained.contains("short name that the log shows"), "\(refused)")
            }
        }

        @Test func `explain takes the short name that the log shows`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var keys = try scenario.imported(2)
            let gateway = try scenario.serve()
            try expectEqual(gateway.client().send(raw: keys[0].get("/v1/bare")).status, 200)
            let name = try #require(try gateway.line(about: "/v1/bare")["key"] as? String)
            let config = scenario.path("portcullis.yaml")
            let request = ["explain", config, "GET", "/v1/bare"]

            func explain(_ more: String...) throws -> Scenario.Result {
                try scenario.portcullis(request + more)
            }

            let id = keys[0].keyID.base64
            let active = try explain("--key", name)
            expectEqual(active.status, 0, "\(active)")
            #expect(active.printed.contains("  key \(name) (\(id)): active\n"), "\(active)")
            #expect(active.printed.contains(", test, imported, "), "\(active)")
            // The same of a key that the request names, and the same place in the rollout.
            let named = try explain("-H", "app-attest-key-id: \(id)")
            expectEqual(named.printed, active.printed)

            _ = try scenario.portcullis("keys", "revoke", "--config", config, name)
            let revoked = try explain("--key", name)
            #expect(revoked.printed.contains("  key \(name) (\(id)): revoked at 20"), "\(revoked)")
            #expect(revoked.printed.contains("the rule's verdict: refuse key-revoked\n"))
            let json = try explain("--key", name, "--json")
            #expect(json.printed.contains(#""name": "\#(name)", "status": "revoked""#), "\(json)")

            let stranger = Scenario.device.makeKey().keyID
            let unknown = try explain("--key", stranger.base64)
            #expect(unknown.printed.contains("): not stored\n"), "\(unknown)")
            #expect(unknown.printed.contains("the rule's verdict: refuse key-unknown\n"))
            let absent = try explain("--key", stranger.logName)
            expectEqual(absent.status, 1)
            #expect(absent.complained.contains("\(stranger.logName) is not stored"), "\(absent)")
            try expectEqual(explain("--key", "AAAA").status, 2)
        }

        @Test func `a copy into a configuration without a store is refused, its rehearsal too`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            _ = try scenario.imported(1)
            let file = scenario.path("open.yaml")
            try scenario.write(
                "open.yaml",
                """
                listen: [{ address: "127.0.0.1:0" }]
                origins: { shop: { servers: ["127.0.0.1:1"] } }
                default: { origin: shop, mode: off }

                """
            )
            let copy = ["store", "copy", "--from", scenario.path("portcullis.yaml"), "--to", file]
            for words in [copy, copy + ["--dry-run"]] {
                let result = try scenario.portcullis(words)
                #expect(result.status == 1 && result.printed.isEmpty, "\(result)")
                #expect(result.complained.contains("\(file) names no store"), "\(result)")
            }
        }

        @Test func `explain says that it can't look a key up without a store`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let key = Scenario.device.makeKey().keyID
            let file = scenario.path("open.yaml")
            try scenario.write(
                "open.yaml",
                """
                listen: [{ address: "127.0.0.1:0" }]
                origins: { shop: { servers: ["127.0.0.1:1"] } }
                default: { origin: shop, mode: off }

                """
            )
            let short = try scenario.portcullis("explain", file, "GET", "/", "--key", key.logName)
            expectEqual(short.status, 1)
            #expect(short.complained.contains("\(file) names no store"), "\(short)")
            let whole = try scenario.portcullis("explain", file, "GET", "/", "--key", key.base64)
            expectEqual(whole.status, 0)
            #expect(
                whole.printed.contains("not looked up, since \(file) names no store"),
                "\(whole)"
            )
            // A store that is not there yet.
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            let config = scenario.path("portcullis.yaml")
            let missing = try scenario.portcullis(
                "explain",
                config,
                "GET",
                "/",
                "--key",
                key.base64
            )
            expectEqual(missing.status, 0)
            #expect(missing.printed.contains("there is no such file"), "\(missing)")
        }

        @Test func `a short name that several keys share revokes none and names them`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            // Of so many keys, some share the first four of 65,536 digits.
            let keys = try scenario.imported(1_500)
            let groups = Dictionary(grouping: keys) { String($0.keyID.logName.prefix(4)) }
            let (name, twins) = try #require(groups.first { $0.value.count > 1 })
            let config = scenario.path("portcullis.yaml")
            for command in ["revoke", "show"] {
                let result = try scenario.portcullis("keys", command, "--config", config, name)
                expectEqual(result.status, 1)
                #expect(result.printed.isEmpty)
                #expect(result.complained.contains("may be any of \(twins.count) keys"))
                for twin in twins { #expect(result.complained.contains(twin.keyID.base64)) }
            }
            let list = try scenario.portcullis(
                "keys",
                "list",
                "--status",
                "revoked",
                "--config",
                config
            )
            #expect(list.printed.isEmpty)
            let more = try #require(
                (5...12).lazy.map { String(twins[0].keyID.logName.prefix($0)) }.first { name in
                    keys.count { $0.keyID.logName.hasPrefix(name) } == 1
                }
            )
            let shown = try scenario.portcullis("keys", "show", "--config", config, more)
            #expect(shown.printed.contains(twins[0].keyID.base64))
        }

        @Test func `the number of keys is right after an import and a revocation, unasked`() throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            let gateway = try scenario.serve()
            let admin = try gateway.adminClient()
            try expectEqual(Metrics(admin)["keys"], 0)
            // Nothing is looked up between a command and the page.
            let keys = try scenario.imported(5)
            try expectEqual(Metrics(admin)["keys"], 5)
            let config = scenario.path("portcullis.yaml")
            for key in keys.prefix(2) {
                let id = key.keyID.base64
                let revoked = try scenario.portcullis("keys", "revoke", "--config", config, id)
                expectEqual(revoked.status, 0)
            }
            let metrics = try Metrics(admin)
            expectEqual(metrics["keys"], 5)
            expectEqual(metrics["keys_revoked"], 2)
        }

        @Test func `list, show, export and import agree`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var keys = try scenario.imported(5)
            let config = scenario.path("portcullis.yaml")
            let gateway = try scenario.serve()
            for _ in 0..<3 {
                try expectEqual(send(gateway.client(), &keys[0]).status, 200)
            }
            let revoked = keys[1].keyID.base64
            _ = try scenario.portcullis("keys", "revoke", "--config", config, revoked)
            try expectEqual(gateway.stop(), 0)

            let list = try scenario.portcullis("keys", "list", "--config", config)
            expectEqual(list.status, 0)
            let rows = list.printed.split(separator: "\n").map { $0.split(separator: "\t") }
            expectEqual(Set(rows.map { String($0[0]) }), Set(keys.map(\.keyID.base64)))
            let first = try #require(rows.first { $0[0] == keys[0].keyID.base64 })
            expectEqual(first[1...4], [Scenario.appID[...], "test", "active", "3"])
            #expect(first[5] != "never")
            expectEqual(rows.filter { $0[3] == "revoked" }.map { String($0[0]) }, [revoked])
            let filtered = try scenario.portcullis(
                "keys",
                "list",
                "--config",
                config,
                "--status",
                "revoked"
            )
            expectEqual(filtered.printed.split(separator: "\n").count, 1)

            let id = keys[0].keyID.base64
            let shown = try scenario.portcullis("keys", "show", "--json", "--config", config, id)
            expectEqual(shown.status, 0)
            #expect(shown.printed.contains(#""counter":3"#))
            let short = try scenario.portcullis(
                "keys",
                "show",
                "--json",
                "--config",
                config,
                keys[0].keyID.logName
            )
            expectEqual(short.printed, shown.printed)
            let absent = try scenario.portcullis(
                "keys",
                "show",
                "--config",
                config,
                Scenario.device.makeKey().keyID.base64
            )
            expectEqual(absent.status, 1)
            let forPeople = try scenario.portcullis("keys", "show", "--config", config, id)
            let lines = forPeople.printed.split(separator: "\n")
            #expect(lines.count > 8)
            #expect(lines.allSatisfy { $0.count < 200 })

            try exportAndImport(scenario, keys, shown: shown.printed)
        }

        /// Takes all keys to another store.
        private func exportAndImport(
            _ scenario: Scenario,
            _ keys: [SoftwareKey],
            shown: String
        ) throws {
            var keys = keys
            let config = scenario.path("portcullis.yaml")
            let exported = try scenario.portcullis("keys", "export", "--config", config)
            expectEqual(exported.printed.split(separator: "\n").count, 5)
            #expect(exported.printed.contains(shown))
            try scenario.write("exported.jsonl", exported.printed)
            let text = try String(contentsOfFile: config, encoding: .utf8)
            try scenario.write("other.yaml", text.replacing("portcullis.db", with: "other.db"))
            let other = scenario.path("other.yaml")
            let imported = try scenario.portcullis(
                "keys",
                "import",
                "--config",
                other,
                scenario.path("exported.jsonl")
            )
            expectEqual(imported.printed, "imported: 5, stored already: 0\n")
            let again = try scenario.portcullis("keys", "export", "--config", other)
            expectEqual(again.printed, exported.printed)

            // What was used in one place is used in the other.
            let second = try scenario.serve("other.yaml")
            keys[0].counter = .zero
            try expectEqual(send(second.client(), &keys[0]).reason, "counter-replayed")
            try expectEqual(send(second.client(), &keys[1]).reason, "key-revoked")
            try expectEqual(send(second.client(), &keys[2]).status, 200)
        }

        @Test func `an import with one bad line imports nothing, unless that is asked for`() throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            let config = scenario.path("portcullis.yaml")
            let good = Scenario.device.makeKey().importLine(as: .test)
            let lines = [good, "{", good.replacing(#""counter":0"#, with: #""counter":-1"#)]
            try scenario.write("bad.jsonl", lines.joined(separator: "\n"))
            let file = scenario.path("bad.jsonl")
            let refused = try scenario.portcullis("keys", "import", "--config", config, file)
            expectEqual(refused.status, 1)
            #expect(refused.complained.contains("bad.jsonl: line 2"), "\(refused)")
            #expect(refused.complained.contains("line 3"))
            try expectEqual(scenario.portcullis("keys", "list", "--config", config).printed, "")
            let some = try scenario.portcullis(
                "keys",
                "import",
                "--skip-problems",
                "--config",
                config,
                file
            )
            expectEqual(some.printed, "imported: 1, stored already: 0\n")
        }

        @Test func `a second gateway on the same store refuses to start and says why`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, _, key) = try scenario.start(rules: Self.rules)
            let second = try scenario.portcullis("serve", scenario.path("portcullis.yaml"))
            expectEqual(second.status, 1)
            #expect(second.complained.contains("portcullis.db"))
            let holder = "(process \(gateway.child.identifier)), a gateway of this configuration"
            #expect(second.complained.contains(holder), "\(second)")
            #expect(!second.complained.contains("listening"))
            try expectEqual(send(gateway.client(), &key).status, 200)
        }
    }
}
