import Cryptography
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import Rules
import SoftwareAuthenticator
import TestSupport
import Testing

@testable import Gateway

extension Scenarios {
    /// A rule that falls back to `observe` by itself, and what does not make it.
    @Suite struct Guards {
        fileprivate static let form = SigningForm.lines([.method, .target], headers: [])

        /// A gateway with two event loops, a guarded rule, and a hook.
        private final class Stand {
            let scenario: Scenario
            let origin: RecordingOrigin
            var config: String { scenario.path("portcullis.yaml") }
            var hookNotes: String { scenario.path("hook.txt") }

            /// - hook: the script that is run when the guard has fallen.
            init(
                hook: String? = nil,
                rollout: String = "{ from: 2020-01-01, to: 2020-02-01, start: 1%, end: 100% }"
            ) throws {
                scenario = try Scenario()
                origin = try scenario.origin()
                let script = #"echo "$PORTCULLIS_HOOK $PORTCULLIS_RULE $1: $PORTCULLIS_REASON""#
                let notes = hookNotes
                try scenario.write(
                    "hook.sh",
                    hook ?? "\(script) > '\(notes).new' && mv '\(notes).new' '\(notes)'\n"
                )
                try scenario.configure(
                    origin,
                    rules: """
                        - id: orders
                          match: { path: /v1/orders }
                          mode: enforce
                          rollout: \(rollout)
                          sign: [method, target]
                          challenge: none
                          guard: { refused: 10%, of: installs, window: 1h, minimum: 20 }
                        """,
                    more: """
                        limits: { address_failures: off }
                        hooks: { guard: [/bin/sh, "\(scenario.path("hook.sh"))", it's] }
                        """
                )
                let text = try String(contentsOfFile: config, encoding: .utf8)
                let admin = "admin: { address: \"unix:\(scenario.path("admin.sock"))\" }"
                try scenario.write(
                    "portcullis.yaml",
                    text.replacing("admin: { address: 127.0.0.1:0 }", with: admin)
                )
            }

            var admin: HTTPClient { HTTPClient(path: scenario.path("admin.sock")) }

            func rollout(_ words: String...) throws -> Scenario.Result {
                try scenario.portcullis(["rollout", "--config", config] + words)
            }

            /// How the rule stands.
            func rule() throws -> [String: Any] {
                let rules = try admin.send("GET", "/status").object?["rules"] as? [[String: Any]]
                return try #require(rules?.first { $0["id"] as? String == "orders" })
            }

            /// What its charts are marked with, the oldest first.
            func marks() throws -> [[String: Any]] {
                var marks: [[String: Any]]?
                // There is no chart while an event loop is too busy to tell its counts.
                try eventually {
                    let answer = try admin.send("GET", "/report/series")
                    marks = answer.object?["marks"] as? [[String: Any]]
                    return marks != nil
                }
                return try #require(marks)
            }

            /// What each key's request is answered. A guard may fall before the last has come.
            func answers(
                _ keys: inout ArraySlice<SoftwareKey>,
                _ gateway: GatewayProcess,
                damage: AssertionDamage? = nil
            ) throws -> Set<Int> {
                let clients = (0..<8).map { _ in gateway.client() }
                var statuses: Set<Int> = []
                for index in keys.indices {
                    let request = SoftwareKey.Request(method: "GET", target: "/v1/orders")
                    let proof = keys[index].proof(of: request, signing: Guards.form, damage: damage)
                    statuses.insert(try clients[index % 8].send(request, proof).status)
                }
                return statuses
            }

            /// What a request without a proof is answered, on both event loops.
            func unproven(_ gateway: GatewayProcess) throws -> Set<Int> {
                Set(try (0..<16).map { _ in try gateway.client().send("GET", "/v1/orders").status })
            }
        }

        @Test func `a bad release of the app makes its rule observe, until it is told`() throws {
            let stand = try Stand()
            defer { stand.scenario.end() }
            let keys = try stand.scenario.imported(60)
            let first = try stand.scenario.serve()
            var (good, bad) = (keys[..<40], keys[40...])
            try expectEqual(stand.answers(&good, first), [200])
            try expectEqual(stand.unproven(first), [401])
            #expect(try stand.answers(&bad, first, damage: .otherClientData).contains(403))
            try expectEqual(first.complaints(of: "the guard of rule orders has fallen: "), 1)
            try first.waitUntil("the fall", stand.admin) { $0["guard_falls_total"] == 1 }
            try expectEqual(stand.answers(&bad, first, damage: .otherClientData), [200])
            try expectEqual(stand.unproven(first), [200])
            try expectEqual(Metrics(stand.admin)["guard_fallen"], 1)
            let rule = try stand.rule()
            #expect(rule["mode"] as? String == "observe")
            #expect(rule["source"] as? String == "guard")
            let order = try #require(rule["order"] as? String)
            #expect(order.contains(" installs refused at 100%"))
            #expect(try stand.rollout().printed.contains("orders\tobserve\tguard ("))
            let audit = stand.scenario.path("portcullis.db.rollout.log")
            let line = try String(contentsOfFile: audit, encoding: .utf8)
            #expect(line.contains(#""to":"observe (guard)""#))
            #expect(line.contains(#""by":"guard""#))
            try expectHook(stand)
            // The dates of the ramp say 100 %, and don't count.
            first.child.signal(SIGHUP)
            try expectEqual(first.complaints(of: "generation 2"), 1)
            try expectEqual(stand.unproven(first), [200])
            let marks = try stand.marks()
            expectEqual(marks.map { $0["kind"] as? String }, ["guard", "reload"])
            let texts = marks.compactMap { $0["text"] as? String }
            expectEqual(texts.first?.hasPrefix("orders: "), true, "\(texts)")
            expectEqual(texts.first?.hasSuffix(" → observe (guard)"), true, "\(texts)")
            expectEqual(texts.last, "generation 2")
            try first.crash()
            #expect(
                try stand.scenario.portcullis("check", stand.config).printed.contains(
                    "its guard has fallen, it is observe ("
                )
            )
            let second = try stand.scenario.serve()
            try expectEqual(stand.unproven(second), [200])
            try expectEqual(Metrics(stand.admin)["guard_fallen"], 1)
            try expectEqual(stand.rollout("orders", "file", "--yes").status, 0)
            try expectEqual(stand.unproven(second), [401])
            try expectEqual(Metrics(stand.admin)["guard_fallen"], 0)
            try expectEqual(stand.marks().map { $0["kind"] as? String }, ["order"])
            try expectEqual(stand.answers(&good, second), [200])
            try expectEqual(second.stop(), 0)
        }

        /// The clients of a provider share few addresses.
        @Test(arguments: [true, false])
        func
            `at 50 % a release whose signatures are all bad makes the guard fall, from any address`(
                isAddressWithin: Bool
            ) throws
        {
            let half = try #require(Share(percent: "50%"))
            let salt = try Self.salt { $0.isWithin(half) == isAddressWithin }
            let stand = try Stand(rollout: "{ percent: 50%, salt: \(salt) }")
            defer { stand.scenario.end() }
            var keys = try stand.scenario.imported(80)[...]
            let gateway = try stand.scenario.serve()
            // Who is refused goes by the address: nobody chooses to be outside by naming a key.
            let answers = try stand.answers(&keys, gateway, damage: .otherClientData)
            expectEqual(answers.contains(403), isAddressWithin)
            try gateway.waitUntil("the fall", stand.admin) { $0["guard_falls_total"] == 1 }
            let order = try #require(try stand.rule()["order"] as? String)
            let counts = try #require(order.firstMatch(of: /(\d+) of (\d+) installs/))
            expectEqual(counts.1, counts.2)
            try expectEqual(stand.unproven(gateway), [200])
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `a ramp that a guard has stopped goes on from where it stood`() throws {
            let stand = try Stand(rollout: try Self.ramp())
            defer { stand.scenario.end() }
            var keys = try stand.scenario.imported(60)[...]
            let first = try stand.scenario.serve()
            try expectEqual(stand.unproven(first), [401])
            #expect(try stand.answers(&keys, first, damage: .otherClientData).contains(403))
            try first.waitUntil("the fall", stand.admin) { $0["guard_falls_total"] == 1 }
            expectEqual(
                (try stand.rule()["ramp"] as? String)?.hasPrefix("its ramp stands at "),
                true
            )
            // An order in between, and a fall behind it, don't end the pause.
            try expectEqual(stand.rollout("orders", "1%", "--yes").status, 0)
            try expectEqual(first.stop(), 0)
            try beginEarlier(stand)
            let check = try stand.scenario.portcullis("check", stand.config).printed
            #expect(check.contains("; its ramp stands at 0% since "))
            let second = try stand.scenario.serve()
            let given = try stand.rollout("orders", "file", "--why", "build 8 is out", "--yes")
            #expect(given.printed.contains(" by key (delayed)"), "\(given.printed)")
            // By its dates, the ramp would refuse this address.
            try expectEqual(stand.unproven(second), [200])
            try expectDelay(stand)
            try second.crash()
            let third = try stand.scenario.serve()
            try expectEqual(stand.unproven(third), [200])
            try expectDelay(stand)
            // Other dates in the file are the operator's word, and count as they are written.
            let rules = try String(contentsOfFile: stand.config, encoding: .utf8)
            try stand.scenario.write(
                "portcullis.yaml",
                rules.replacing("start: 0%", with: "start: 20%")
            )
            third.child.signal(SIGHUP)
            try expectEqual(third.complaints(of: "generation 2"), 1)
            try expectEqual(stand.unproven(third), [401])
            #expect(try stand.rule()["source"] as? String == "file")
            try expectEqual(third.stop(), 0)
        }

        /// A ramp that is above 67 % today, so that most of the keys count, and a salt by which the
        /// address of all clients here is among the first 10 %.
        private static func ramp() throws -> String {
            let tenth = try #require(Share(percent: "10%"))
            let salt = try salt { $0.isWithin(tenth) }
            let day = Int64(Date().timeIntervalSince1970) / 86_400
            func date(_ day: Int64) -> String {
                String(UnixTime(seconds: day * 86_400).iso8601.prefix(10))
            }
            return "{ from: \(date(day - 2)), to: \(date(day + 1)), start: 0%, end: 100%, "
                + "salt: \(salt) }"
        }

        /// A salt by which the address of all clients here has such a bucket.
        private static func salt(_ isWanted: (Bucket) -> Bool) throws -> String {
            try #require(
                (0..<1_000).map { "salt \($0)" }.first { salt in
                    isWanted(Rollout(.fixed(.whole), salt: salt).bucket(of: [127, 0, 0, 1].span))
                }
            )
        }

        /// Has the gateway find that the guard fell when the ramp began.
        private func beginEarlier(_ stand: Stand) throws {
            let path = stand.scenario.path("portcullis.db.rollout")
            let text = try String(contentsOfFile: path, encoding: .utf8)
            let day = Int64(Date().timeIntervalSince1970) / 86_400 - 2
            let since = UnixTime(seconds: day * 86_400).iso8601
            let changed = text.replacing(/"since": "[^"]*"/, with: "\"since\": \"\(since)\"")
            #expect(changed != text)
            try stand.scenario.write("portcullis.db.rollout", changed)
        }

        /// Status, list, `check` and `explain` tell that the ramp is late.
        private func expectDelay(_ stand: Stand) throws {
            let rule = try stand.rule()
            #expect(rule["mode"] as? String == "enforce")
            #expect(rule["source"] as? String == "delayed")
            expectEqual((rule["order"] as? String)?.hasSuffix(": build 8 is out"), true)
            let late = "since its guard had stopped it"
            expectEqual((rule["ramp"] as? String)?.hasSuffix(late), true)
            #expect(try stand.rollout().printed.contains(late))
            #expect(try stand.scenario.portcullis("check", stand.config).printed.contains(late))
            let why = try stand.scenario.portcullis("explain", stand.config, "GET", "/v1/orders")
            #expect(why.printed.contains(late))
            #expect(why.printed.contains("    its file says enforce, 0% on "))
            try expectEqual(Metrics(stand.admin)["rollout_orders"], 1)
        }

        /// The hook has got what happened, and its argument as it stands in the file.
        private func expectHook(_ stand: Stand) throws {
            var text: String?
            eventually {
                text = try? String(contentsOfFile: stand.hookNotes, encoding: .utf8)
                return text?.hasSuffix("\n") == true
            }
            expectEqual(text?.hasPrefix("guard orders it's: "), true, "\(text ?? "no file")")
            expectEqual(text?.hasSuffix(" installs refused at 100%\n"), true)
        }

        @Test func `an attacker without many enrolled keys does not make a rule observe`() throws {
            let stand = try Stand()
            defer { stand.scenario.end() }
            var known = try stand.scenario.imported(60)[...]
            var strangers = (0..<60).map { _ in Scenario.device.makeKey() }[...]
            let gateway = try stand.scenario.serve()
            // Ways to be refused that anybody has, and a few keys of one's own.
            for _ in 0..<3 {
                try expectEqual(stand.answers(&strangers, gateway, damage: .otherClientData), [401])
                try expectEqual(stand.answers(&strangers, gateway, damage: .truncated), [400])
                try expectEqual(stand.unproven(gateway), [401])
                var own = known.prefix(6)
                try expectEqual(stand.answers(&own, gateway, damage: .signature), [403])
                try expectEqual(stand.answers(&own, gateway, damage: .truncated), [400])
            }
            known = known.dropFirst(6)
            try expectEqual(stand.answers(&known, gateway), [200])
            // What was refused came first, so it has been looked at once this holds.
            try gateway.waitUntil("the counts", stand.admin) { $0["guard_installs"] >= 50 }
            #expect((4..<10).contains(try Metrics(stand.admin)["guard_installs_refused"]))
            try expectEqual(Metrics(stand.admin)["guard_falls_total"], 0)
            #expect(try stand.rule()["mode"] as? String == "enforce")
            try expectEqual(stand.unproven(gateway), [401])
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `a guard whose order can't be saved falls all the same, and says so`() throws {
            let stand = try Stand(hook: "exit 3\n")
            defer { stand.scenario.end() }
            var keys = try stand.scenario.imported(40)[...]
            let gateway = try stand.scenario.serve()
            // A folder in the place of the new file: no write succeeds, also for root.
            try FileManager.default.createDirectory(
                atPath: stand.scenario.path("portcullis.db.rollout.new/x"),
                withIntermediateDirectories: true
            )
            #expect(try stand.answers(&keys, gateway, damage: .otherClientData).contains(403))
            try expectEqual(
                gateway.complaints(of: "the orders about rollouts hold, and are not yet written"),
                1
            )
            try expectEqual(gateway.complaints(of: "/bin/sh: it ended with status 3"), 1)
            try expectEqual(stand.unproven(gateway), [200])
            // It is written as soon as it can be, and outlives a crash then.
            try FileManager.default.removeItem(
                atPath: stand.scenario.path("portcullis.db.rollout.new")
            )
            try gateway.waitUntil("orders on disk", stand.admin) {
                $0["rollout_orders_unsaved"] == 0
            }
            try gateway.crash()
            let next = try stand.scenario.serve()
            try expectEqual(stand.unproven(next), [200])
            try expectEqual(next.stop(), 0)
        }
    }

    /// Commands that the configuration names.
    @Suite struct Hooks {
        private func run(_ words: [String], _ timeout: Duration = .seconds(60)) -> String? {
            HookRun(words, ["A": "b"], timeout: timeout).run()
        }

        @Test func `a hook gets its words and its variables, and nothing else`() {
            let script = #"test "$1$2" = "x y" -a "$A" = b -a -z "$HOME" -a ! -e /proc/self/fd/3"#
            expectEqual(run(["/bin/sh", "-c", script, "it", "x", " y"]), nil)
        }

        @Test func `how a hook fails is told`() {
            expectEqual(run(["/bin/sh", "-c", "exit 7"]), "it ended with status 7")
            expectEqual(run(["/bin/sh", "-c", "kill -9 $$"]), "it was ended by signal 9")
            let absent = run(["/absent/program"])
            expectEqual(absent, "it can't be started: No such file or directory")
        }

        @Test func `a hook runs and is timed while no descriptor is free`() {
            func run(_ script: String, _ timeout: Duration = .seconds(60)) -> String? {
                var hook = HookRun(["/bin/sh", "-c", script], [:], timeout: timeout)
                // As pidfd_open(2) fails with EMFILE.
                hook.openHandle = { _ in -1 }
                return hook.run()
            }
            expectEqual(run("exit 0"), nil)
            expectEqual(run("exit 7"), "it ended with status 7")
            let late = run("tail -f /dev/null & wait", .milliseconds(300))
            expectEqual(late, "it took longer than 300ms, and was killed")
        }

        @Test func `a hook that goes on for too long is killed with what it has started`() {
            let script = "tail -f /dev/null & wait"
            let fault = run(["/bin/sh", "-c", script], .milliseconds(300))
            expectEqual(fault, "it took longer than 300ms, and was killed")
        }
    }
}
