import Expectations
import Foundation
import Glibc
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Rollouts that operators change while the gateway runs.
    @Suite struct RolloutCommands {
        @Test func `an order takes effect in all loops at once, and says who and why`() throws {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let gateway = try stand.scenario.serve()
            try expectEqual(stand.answers(gateway), [401])
            let done = try stand.run("orders", "observe", "--why", "build 7 fails")
            expectEqual(done.status, 0)
            expectEqual(done.printed, "orders: enforce (file) → observe (command)\n")
            try expectEqual(stand.answers(gateway), [200])
            let rule = try #require(try stand.status()["orders"])
            #expect(rule["mode"] as? String == "observe")
            #expect(rule["source"] as? String == "command")
            #expect(rule["file"] as? String == "enforce")
            let order = try #require(rule["order"] as? String)
            #expect(order.hasSuffix("Z, uid \(getuid()): build 7 fails"))
            let entry = try #require(try stand.audit().last)
            expectEqual(entry["rule"], "orders")
            expectEqual(entry["from"], "enforce (file)")
            expectEqual(entry["to"], "observe (command)")
            expectEqual(entry["by"], "uid \(getuid())")
            expectEqual(entry["why"], "build 7 fails")
            let listed = try stand.run()
            #expect(listed.printed.contains("orders\tobserve\tcommand ("))
            #expect(listed.printed.contains("\tfile: enforce\n"))
            try expectEqual(stand.run("orders", "0%").status, 0)
            try expectEqual(stand.answers(gateway), [200])
            try expectEqual(stand.run("orders", "file", "--yes").status, 0)
            try expectEqual(stand.answers(gateway), [401])
            try expectEqual(stand.audit().count, 3)
        }

        @Test func `an order about a rule that takes only tokens needs no store, and is kept`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.write("keys.json", TokenIssuer.set(.init("one")))
            try scenario.configure(
                origin: origin.address,
                apps: "  - \(Scenario.app)",
                rules: "- { id: page, match: { path: /page }, mode: enforce, accept: [page] }",
                more: """
                    proofs:
                      page: { kind: jwt, field: X-Page, issuer: "\(TokenIssuer.name)", \
                    audience: shop, algorithms: [ES256], keys: { file: keys.json } }
                    """
            )
            try scenario.serveCalls()
            let config = scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: config, encoding: .utf8)
            let ofStore = "apps:\n  - \(Scenario.app)\nstore: { sqlite: \"portcullis.db\" }\n"
            #expect(text.contains(ofStore))
            try scenario.write("portcullis.yaml", text.replacing(ofStore, with: ""))
            let first = try scenario.serve()
            try expectEqual(first.client().send("GET", "/page").status, 401)
            let done = try scenario.portcullis("rollout", "--config", config, "page", "observe")
            expectEqual(done.printed, "page: enforce (file) → observe (command)\n", "\(done)")
            try expectEqual(first.client().send("GET", "/page").status, 200)
            try expectEqual(first.stop(), 0)
            #expect(FileManager.default.fileExists(atPath: config + ".rollout"))
            let second = try scenario.serve()
            try expectEqual(second.client().send("GET", "/page").status, 200)
        }

        @Test func `the plan that apps get follows the orders`() throws {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let gateway = try stand.scenario.serve()
            func served() throws -> String {
                let texts = Set(
                    try (0..<16).map { _ in
                        let client = gateway.client()
                        return try client.send("GET", "/.well-known/app-attest/plan").text
                    }
                )
                expectEqual(texts.count, 1)
                return try #require(texts.first)
            }
            let printed = try stand.scenario.portcullis(["plan", stand.config]).printed
            try expectEqual(served(), printed)
            // Modes that verify ask the same.
            try expectEqual(stand.run("orders", "observe").status, 0)
            try expectEqual(served(), printed)
            try expectEqual(stand.run("orders", "off").status, 0)
            let off = try served()
            #expect(off != printed)
            #expect(!off.contains("target"))
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            try expectEqual(served(), off)
            try expectEqual(stand.run("orders", "file", "--yes").status, 0)
            try expectEqual(served(), printed)
        }

        @Test func `an order outlives a reload, a stop and a kill, and check tells of it`() throws {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let first = try stand.scenario.serve()
            try expectEqual(stand.run("orders", "off", "--why", "a test").status, 0)
            first.child.signal(SIGHUP)
            _ = try first.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            try expectEqual(stand.answers(first), [200])
            try first.crash()
            let check = try stand.scenario.portcullis("check", stand.config)
            expectEqual(check.status, 0)
            #expect(check.printed.contains("    by a command it is off ("))
            let second = try stand.scenario.serve()
            try expectEqual(stand.answers(second), [200])
            // What the file says later does not count before the order is taken back.
            try expectEqual(stand.run("orders", "file", "--yes").status, 0)
            try expectEqual(stand.answers(second), [401])
            try expectEqual(second.stop(), 0)
        }

        @Test func `off in the file ends an order to enforce, and keeps what refuses fewer`() throws
        {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let gateway = try stand.scenario.serve()
            var generation = 1
            func reload(_ mode: String) throws {
                try stand.configure(
                    RolloutStand.rules.replacing("mode: enforce", with: "mode: \(mode)")
                )
                generation += 1
                gateway.child.signal(SIGHUP)
                _ = try gateway.child.wait(for: "reload") { [generation] _, complained in
                    complained.contains("generation \(generation)\n") ? true : nil
                }
            }
            try reload("observe")
            try expectEqual(stand.run("orders", "100%", "--yes").status, 0)
            try expectEqual(stand.answers(gateway), [401])
            let enforced = try stand.scenario.portcullis("check", stand.config)
            #expect(enforced.printed.contains("found observe, and the order 100% for it ("))
            #expect(!enforced.printed.contains("no rule is enforced"), "\(enforced)")
            try reload("off")
            #expect(try eventually { try stand.audit().last?["to"] == "no order" })
            try expectEqual(stand.audit().last?["by"], "portcullis")
            try reload("observe")
            try expectEqual(stand.answers(gateway), [200])
            #expect(try stand.run().printed.contains("orders\tobserve\tfile\tfile: observe\n"))
            // An order of less than the file holds.
            try reload("enforce")
            try expectEqual(stand.run("orders", "0%", "--why", "slowly").status, 0)
            try reload("off")
            let kept = "\tfile: off\tkept order: at most 0% ("
            #expect(try eventually { try stand.run().printed.contains(kept) })
            let text = try #require(try stand.status()["orders"]?["kept_order"] as? String)
            #expect(text.hasSuffix("uid \(getuid()): slowly)"), "\(text)")
            let explained = try stand.scenario.portcullis(
                "explain",
                stand.config,
                "GET",
                "/v1/orders"
            )
            #expect(explained.printed.contains("a kept order changes nothing now: at most 0% ("))
            try reload("enforce")
            try expectEqual(stand.answers(gateway), [200])
            try expectEqual(stand.run("orders", "file", "--yes").status, 0)
            try expectEqual(stand.answers(gateway), [401])
        }

        @Test func `the emergency switch stops every refusal, and no denial`() throws {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let gateway = try stand.scenario.serve()
            try expectEqual(stand.run("--all", "observe", "--why", "on fire").status, 0)
            try expectEqual(stand.answers(gateway), [200])
            try expectEqual(stand.answers(gateway, "/v1/closed"), [404])
            #expect(try stand.status()["orders"]?["source"] as? String == "emergency")
            #expect(try stand.run("orders", "100%").printed.contains("(emergency)\n"))
            try expectEqual(stand.answers(gateway), [200])
            // The requests of this hour say whom its end would refuse.
            let asked = try stand.run("--all", "resume")
            expectEqual(asked.status, 1)
            #expect(asked.complained.contains("orders: last hour ("), "\(asked)")
            #expect(asked.complained.contains("100% would have refused "), "\(asked)")
            let next = "have rules observe by orders of their own, or add --yes"
            #expect(asked.complained.contains(next), "\(asked)")
            try expectEqual(stand.answers(gateway), [200])
            try expectEqual(stand.run("--all", "resume", "--yes").status, 0)
            try expectEqual(stand.answers(gateway), [401])
            try expectEqual(stand.audit().map { $0["rule"] }, ["*", "orders", "*"])
            // Where no emergency is, nothing is refused more.
            try expectEqual(stand.run("--all", "resume").status, 0)
        }

        @Test func `the emergency switch works while the files are wrong`() throws {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let gateway = try stand.scenario.serve()
            try expectEqual(stand.answers(gateway), [401])
            try stand.configure(
                RolloutStand.rules.replacing("mode: enforce", with: "mode: enfroce")
            )
            let done = try stand.run("--all", "observe", "--why", "on fire")
            expectEqual(done.status, 0, "\(done)")
            #expect(done.complained.contains("is asked all the same"), "\(done)")
            try expectEqual(stand.answers(gateway), [200])
        }

        @Test func `with the listener's address, it works without any file`() throws {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let gateway = try stand.scenario.serve()
            try expectEqual(stand.answers(gateway), [401])
            let text = try String(contentsOfFile: stand.config, encoding: .utf8)
            try stand.scenario.write("portcullis.yaml", text + "\nfoo: [\n")
            let stuck = try stand.run("--all", "observe")
            expectEqual(stuck.status, 1)
            let socket = "unix:/run/portcullis/admin.sock"
            #expect(stuck.complained.contains("as in --admin \(socket);"), "\(stuck)")
            try FileManager.default.removeItem(atPath: stand.config)
            #expect(try stand.run().complained.contains("as in --admin \(socket);"))
            func run(_ words: String...) throws -> Scenario.Result {
                let admin = ["--admin", "unix:" + stand.scenario.path("admin.sock")]
                return try stand.scenario.portcullis(words + admin)
            }
            let done = try run("rollout", "--all", "observe", "--why", "on fire")
            expectEqual(done.status, 0, "\(done)")
            expectEqual(done.printed, "all rules: each rule's own → observe\n")
            expectEqual(done.complained, "")
            try expectEqual(stand.answers(gateway), [200])
            try expectEqual(run("rollout").status, 0)
            try expectEqual(run("report").status, 0)
            try expectEqual(run("origins", "list").status, 0)
            // One of the two, and no token where a file says who may call.
            for words in [["--config", stand.config], ["--token-file", "t"]] {
                let wrong = try stand.scenario.portcullis(
                    ["rollout", "--admin", "unix:" + stand.scenario.path("admin.sock")] + words
                )
                #expect(wrong.status != 0, "\(wrong)")
            }
            try expectEqual(stand.scenario.portcullis("rollout").status, 2)
            try expectEqual(stand.scenario.portcullis("rollout", "--admin", "nowhere").status, 2)
        }

        @Test func `an order that is not answered in time may hold, and the command says so`()
            throws
        {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let gateway = try stand.scenario.serve()
            try expectEqual(stand.answers(gateway), [401])
            gateway.child.signal(SIGSTOP)
            let late = try stand.run("--all", "observe")
            gateway.child.signal(SIGCONT)
            expectEqual(late.status, 1)
            #expect(late.complained.contains("does not answer in time"), "\(late)")
            #expect(!late.complained.contains("nothing has changed"), "\(late)")
            #expect(late.complained.contains("not known whether the order holds"), "\(late)")
            #expect(late.complained.contains("next: `portcullis rollout` lists"), "\(late)")
            #expect(try eventually { try stand.answers(gateway) == [200] })
            // What asks changes nothing.
            gateway.child.signal(SIGSTOP)
            let asked = try stand.run()
            gateway.child.signal(SIGCONT)
            #expect(!asked.complained.contains("not known whether"), "\(asked)")
        }

        @Test func `a rule whose file does not say how to verify takes no order`() throws {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let gateway = try stand.scenario.serve()
            for id in ["open", "closed", "default"] {
                let refused = try stand.run(id, "10%")
                expectEqual(refused.status, 1)
                #expect(refused.complained.contains("write mode: observe there"))
            }
            #expect(try stand.run("nobody", "10%").complained.contains("no rule has this id;"))
            let slip = "no rule has this id; did you mean orders?"
            #expect(try stand.run("ordres", "10%").complained.contains(slip))
            #expect(try stand.run("ordres", "observe").complained.contains(slip))
            for (word, meant) in [("10", "10%"), ("1", "1%"), ("oberve", "observe")] {
                let refused = try stand.run("orders", word)
                expectEqual(refused.status, 2)
                #expect(refused.complained.hasSuffix("did you mean \(meant)?\n"))
                #expect(!refused.complained.contains("Usage"))
            }
            try expectEqual(stand.run("orders", "10%", "--why", "a\nb").status, 2)
            #expect(!FileManager.default.fileExists(atPath: stand.orders))
            try expectEqual(gateway.stop(), 0)
        }

        @Test
        func `an order that would refuse more than the guard allows says whom, and needs --yes`()
            throws
        {
            let rules = RolloutStand.rules.replacing(
                "mode: enforce",
                with: "mode: observe\n  challenge: none\n  guard: { refused: 20%, of: installs }"
            )
            let stand = try RolloutStand(rules: rules)
            defer { stand.scenario.end() }
            var keys = try stand.scenario.imported(40)
            let gateway = try stand.scenario.serve()
            let client = gateway.client()
            let form = SigningForm.lines([.method, .target], headers: [])
            func send(_ place: Int, _ damage: AssertionDamage?) throws {
                let request = SoftwareKey.Request(method: "GET", target: "/v1/orders")
                let proof = keys[place].proof(of: request, signing: form, damage: damage)
                try expectEqual(client.send(request, proof).status, 200)
            }
            for place in keys.indices { try send(place, nil) }
            // Nothing speaks against it, so nothing is asked.
            let calm = try stand.run("orders", "100%")
            expectEqual(calm.status, 0, "\(calm.complained)")
            #expect(calm.complained.contains("100% would have refused 0 of 40 requests (0.00%)"))
            #expect(!(try stand.run("orders", "observe").complained.contains("would have")))
            for place in 0..<20 { try send(place, .counterRepeated) }
            let refused = try stand.run("orders", "100%")
            expectEqual(refused.status, 1)
            #expect(
                refused.complained.contains("100% would have refused 20 of 60 requests (33.33%)")
            )
            #expect(refused.complained.contains("not verified, by build: not known: 20 of 60"))
            #expect(refused.complained.contains("nothing has changed"))
            try expectEqual(stand.answers(gateway), [200])
            #expect(try stand.status()["orders"]?["mode"] as? String == "observe")
            let ordered = try stand.run("orders", "100%", "--yes")
            expectEqual(ordered.status, 0)
            #expect(ordered.complained.contains("of 76 requests"))
            try expectEqual(stand.answers(gateway), [401])
            // A smaller share refuses nobody more.
            #expect(!(try stand.run("orders", "25%").complained.contains("would have")))
        }

        @Test func `a file of orders that is broken stops the start, with a way out`() throws {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let first = try stand.scenario.serve()
            try expectEqual(stand.run("orders", "observe").status, 0)
            try expectEqual(first.stop(), 0)
            let whole = try Data(contentsOf: URL(fileURLWithPath: stand.orders))
            try whole.dropLast(40).write(to: URL(fileURLWithPath: stand.orders))
            let refused = try stand.scenario.portcullis("serve", stand.config)
            expectEqual(refused.status, 1)
            #expect(refused.complained.contains("portcullis.db.rollout:1: found orders that can't"))
            #expect(refused.complained.contains("or delete it"))
            try expectEqual(stand.scenario.portcullis("check", stand.config).status, 1)
            try FileManager.default.removeItem(atPath: stand.orders)
            try expectEqual(stand.answers(try stand.scenario.serve()), [401])
        }

        @Test func `an order that can't be saved changes nothing, if it may refuse more`() throws {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let gateway = try stand.scenario.serve()
            try expectEqual(stand.run("orders", "10%").status, 0)
            // A folder in the place of the new file: no write succeeds, also for root.
            try FileManager.default.createDirectory(
                atPath: stand.orders + ".new/x",
                withIntermediateDirectories: true
            )
            let refused = try stand.run("orders", "20%", "--yes")
            expectEqual(refused.status, 1)
            #expect(refused.complained.contains("nothing has changed"))
            try expectEqual(stand.status()["orders"]?["rollout"] as? String, "10% by key")
            try expectEqual(stand.audit().count, 1)
            // Less holds, and not over a restart.
            let smaller = try stand.run("orders", "5%")
            expectEqual(smaller.status, 0, "\(smaller)")
            #expect(smaller.printed.contains("not yet on disk: "), "\(smaller)")
            try expectEqual(stand.status()["orders"]?["rollout"] as? String, "5% by key")
            try gateway.crash()
            let second = try stand.scenario.serve()
            try expectEqual(stand.status()["orders"]?["rollout"] as? String, "10% by key")
            try FileManager.default.removeItem(atPath: stand.orders + ".new")
            try expectEqual(stand.run("orders", "20%", "--yes").status, 0)
            try expectEqual(stand.audit().count, 2)
            try expectEqual(second.stop(), 0)
        }

        @Test func `on a full disk the emergency switch works, and is written when there is room`()
            throws
        {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let folder = stand.scenario.path("disk")
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: false
            )
            let text = try String(contentsOfFile: stand.config, encoding: .utf8)
            let store = text.replacing("\"portcullis.db\"", with: "\"disk/portcullis.db\"")
            try stand.scenario.write("portcullis.yaml", store)
            let mount = "-t tmpfs -o size=1m tmpfs"
            guard let outer = try stand.scenario.onMount(mount, folder) else { return }
            let gateway = try stand.scenario.serve(within: outer)
            try expectEqual(stand.answers(gateway), [401])
            // The folder of the gateway's own view of the file system.
            let disk = "/proc/\(gateway.child.identifier)/root\(folder)"
            let ballast = open(disk + "/ballast", O_WRONLY | O_CREAT, 0o600)
            let block = [UInt8](repeating: 0, count: 4_096)
            while write(ballast, block, block.count) > 0 {}
            close(ballast)

            let done = try stand.run("--all", "observe", "--why", "incident 4711")
            expectEqual(done.status, 0, "\(done)")
            #expect(done.printed.contains("not yet on disk: "), "\(done)")
            #expect(done.printed.contains("No space left on device"), "\(done)")
            try expectEqual(stand.answers(gateway), [200])
            let admin = HTTPClient(path: stand.scenario.path("admin.sock"))
            try expectEqual(Metrics(admin)["rollout_orders_unsaved"], 1)
            let said = try admin.send("GET", "/status").object?["rollout_orders_unsaved"]
            #expect((said as? String)?.contains("No space left") == true, "\(said ?? "")")
            try expectEqual(gateway.complaints(of: "and are not yet written"), 1)
            // What refuses more still needs the disk.
            let resumed = try stand.run("--all", "resume", "--yes")
            expectEqual(resumed.status, 1)
            #expect(resumed.complained.contains("No space left"), "\(resumed)")
            try expectEqual(stand.answers(gateway), [200])

            unlink(disk + "/ballast")
            try gateway.waitUntil("orders on disk", admin) { $0["rollout_orders_unsaved"] == 0 }
            try expectEqual(gateway.complaints(of: "the orders about rollouts are written"), 1)
            let orders = try String(
                contentsOfFile: disk + "/portcullis.db.rollout",
                encoding: .utf8
            )
            #expect(orders.contains("incident 4711"), "\(orders)")
            let changes = try admin.send("GET", "/audit").object?["changes"] as? [[String: Any]]
            expectEqual(changes?.map { $0["why"] as? String }, ["incident 4711"])
            try expectEqual(stand.run("--all", "resume", "--yes").status, 0)
            try expectEqual(stand.answers(gateway), [401])
        }

        @Test func `an order that no request speaks about needs --yes`() throws {
            let rules = RolloutStand.rules.replacing("mode: enforce", with: "mode: observe")
            let stand = try RolloutStand(rules: rules)
            defer { stand.scenario.end() }
            let gateway = try stand.scenario.serve()
            let blind = try stand.run("orders", "100%")
            expectEqual(blind.status, 1)
            #expect(blind.complained.contains("no request was judged"), "\(blind)")
            #expect(blind.complained.contains("or add --yes"), "\(blind)")
            #expect(try stand.status()["orders"]?["mode"] as? String == "observe")
            try expectEqual(stand.run("orders", "100%", "--yes").status, 0)
            try expectEqual(stand.answers(gateway), [401])
        }

        @Test func `where only a few requests were judged, an order needs --yes`() throws {
            let rules = RolloutStand.rules.replacing("mode: enforce", with: "mode: observe")
            let stand = try RolloutStand(rules: rules)
            defer { stand.scenario.end() }
            let gateway = try stand.scenario.serve()
            let client = gateway.client()
            for _ in 0..<9 { try expectEqual(client.send("GET", "/v1/orders").status, 200) }
            let most = try stand.run("orders", "100%")
            expectEqual(most.status, 1)
            #expect(most.complained.contains("would have refused 9 of 9 requests"), "\(most)")
            #expect(most.complained.contains("this would refuse many clients"), "\(most)")
            // Of addresses that none of them has.
            let few = try stand.run("orders", "1%")
            expectEqual(few.status, 1, "\(few)")
            #expect(few.complained.contains(" of 9 requests"), "\(few)")
            try expectEqual(stand.answers(gateway), [200])
            try expectEqual(stand.run("orders", "100%", "--yes").status, 0)
            try expectEqual(stand.answers(gateway), [401])
        }

        @Test func `an order after a cut line of the audit log has a line of its own`() throws {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            try expectEqual(stand.answers(try stand.scenario.serve()), [401])
            try expectEqual(stand.run("orders", "observe").status, 0)
            // As a crash leaves it.
            let log = try #require(FileHandle(forUpdatingAtPath: stand.orders + ".log"))
            _ = try log.seekToEnd()
            try log.write(contentsOf: Data(#"{"rule":"orders","fr"#.utf8))
            try log.close()
            try expectEqual(stand.run("orders", "file", "--yes").status, 0)
            let admin = HTTPClient(path: stand.scenario.path("admin.sock"))
            let answer = try admin.send("GET", "/audit")
            let changes = try #require(answer.object?["changes"] as? [[String: Any]], "\(answer)")
            expectEqual(
                changes.map { $0["to"] as? String },
                ["observe (command)", "enforce (file)"]
            )
        }

        @Test func `two configurations are compared, with what was ordered`() throws {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let gateway = try stand.scenario.serve()
            try expectEqual(stand.run("orders", "25%").status, 0)
            try expectEqual(gateway.stop(), 0)
            let text = try String(contentsOfFile: stand.config, encoding: .utf8)
            let next = text.replacing("sign: [method, target]", with: "sign: [method]")
            try stand.scenario.write("next.yaml", next.replacing("mode: off", with: "mode: deny"))
            func diff(_ new: String) throws -> Scenario.Result {
                try stand.scenario.portcullis("diff", stand.config, stand.scenario.path(new))
            }
            let changed = try diff("next.yaml")
            expectEqual(changed.status, 0)
            #expect(changed.printed.hasPrefix("orders\n  no longer: signs method, target\n"))
            #expect(changed.printed.contains("  by a command it is enforce, 25% by key ("))
            #expect(changed.printed.contains("open\n  mode: off → deny\n"))
            try expectEqual(diff("portcullis.yaml").printed, "no endpoint changes\n")
            try stand.scenario.write("next.yaml", "listen: 1\n")
            try expectEqual(diff("next.yaml").status, 1)
        }

        @Test func `an order of a share refuses that share of the keys`() throws {
            let stand = try RolloutStand()
            defer { stand.scenario.end() }
            let keys = try stand.scenario.imported(200)
            let gateway = try stand.scenario.serve()
            let client = gateway.client()
            func refused() throws -> Int {
                try keys.reduce(into: 0) { count, key in
                    var key = key
                    let request = SoftwareKey.Request(method: "GET", target: "/v1/orders")
                    let form = SigningForm.lines([.method, .target], headers: [])
                    let proof = key.proof(of: request, signing: form, damage: .counterRepeated)
                    if try client.send(request, proof).status != 200 { count += 1 }
                }
            }
            _ = try stand.run("orders", "25%")
            // Seven standard deviations to either side of 50.
            #expect((8...92).contains(try refused()))
            _ = try stand.run("orders", "0%")
            try expectEqual(refused(), 0)
        }
    }
}
