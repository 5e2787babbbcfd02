import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// What operators order around an upgrade, and processes that hang in it.
    @Suite(.enabled(if: Scenario.isPossible)) struct UpgradeOrders {
        private static let second = "127.0.0.1:9"

        /// A gateway whose origins are the one that records and one that takes no connection.
        private func stand(_ program: String? = nil, within outer: [String] = []) throws
            -> UpgradeStand
        {
            try UpgradeStand(
                origins: "  other: { servers: [\"\(Self.second)\"] }",
                keys: 2,
                program: program,
                within: outer
            )
        }

        private func run(_ stand: UpgradeStand, _ words: String...) throws -> Scenario.Result {
            let config = ["--config", stand.scenario.path("portcullis.yaml")]
            let command = words.prefix(words[0] == "origins" ? 2 : 1)
            return try stand.scenario.portcullis(
                command + config + words.dropFirst(command.count)
            )
        }

        @Test func `orders and drained servers go over, whatever their file says`() throws {
            let stand = try stand()
            defer { stand.end() }
            try expectEqual(run(stand, "rollout", "bare", "observe").status, 0)
            try expectEqual(run(stand, "origins", "drain", Self.second, "--yes").status, 0)
            // As after an order of a guard that a full disk did not take.
            let file = stand.scenario.path("portcullis.db.rollout")
            try FileManager.default.removeItem(atPath: file)
            for _ in 0..<2 {
                try stand.upgrade()
                let rules = try run(stand, "rollout").printed
                #expect(rules.contains("bare\tobserve\tcommand ("), "\(rules)")
                let servers = try run(stand, "origins", "list").printed
                #expect(servers.contains("\(Self.second)\tdrained"), "\(servers)")
                try expectEqual(stand.gateway.client().send("GET", "/v1/bare").status, 200)
            }
            // The next order keeps the one before.
            try expectEqual(run(stand, "rollout", "window", "observe").status, 0)
            #expect(try run(stand, "rollout").printed.contains("bare\tobserve\tcommand ("))
            try expectEqual(run(stand, "origins", "undrain", Self.second).status, 0)
            try stand.upgrade()
            #expect(try !run(stand, "origins", "list").printed.contains("drained"))
        }

        /// A program that says READY, takes the state as a gateway does, and then does nothing. It
        /// says that it lives as long as there is a file `alive`.
        private static let impostor = """
            #!\(Scenario.tool("python3") ?? "")
            import os, socket, sys, threading, time
            s = socket.socket(fileno=3)
            folder = sys.argv[0] + ".d/"
            def live():
                while True:
                    if os.path.exists(folder + "alive"): s.send(bytes([10]))
                    time.sleep(0.2)
            def take():
                while True:
                    data, fds, flags, where = socket.recv_fds(s, 1 << 17, 250)
                    if not data: sys.exit(9)
                    if data[0] == 5 and data[1] == 1: return
            def say(text): print(text, file=sys.stderr, flush=True)
            threading.Thread(target=live, daemon=True).start()

            """

        private func withImpostor(
            _ lines: String,
            within outer: [String] = [],
            _ body: (UpgradeStand, _ folder: String) throws -> Void
        ) throws {
            guard Scenario.tool("python3") != nil, let built = Scenario.program else { return }
            let program = NSTemporaryDirectory() + "portcullis-\(UUID().uuidString)"
            let folder = program + ".d/"
            let files = FileManager.default
            try files.createDirectory(atPath: folder, withIntermediateDirectories: false)
            try UpgradeStand.place(built, at: program)
            defer {
                for path in [program, folder] { try? files.removeItem(atPath: path) }
            }
            try "".write(toFile: folder + "alive", atomically: false, encoding: .utf8)
            let stand = try stand(program, within: outer)
            defer { stand.end() }
            try files.removeItem(atPath: program)
            let text = Self.impostor.replacing("sys.argv[0]", with: "'\(program)'") + lines
            try text.write(toFile: program, atomically: true, encoding: .utf8)
            chmod(program, 0o755)
            try body(stand, folder)
        }

        @Test func `orders are refused while an upgrade runs, and taken again after it`() throws {
            let lines = """
                say('started')
                while os.path.exists(folder + 'alive'): time.sleep(0.05)

                """
            try withImpostor(lines) { stand, folder in
                kill(stand.gateway.child.identifier, SIGUSR2)
                try stand.awaitLine("started")
                let orders = [
                    ["rollout", "bare", "observe"], ["rollout", "--all", "observe"],
                    ["origins", "drain", Self.second, "--yes"],
                ]
                for order in orders {
                    let refused = try stand.scenario.portcullis(
                        order.prefix(order[0] == "origins" ? 2 : 1)
                            + ["--config", stand.scenario.path("portcullis.yaml")]
                            + order.dropFirst(order[0] == "origins" ? 2 : 1)
                    )
                    expectEqual(refused.status, 1)
                    #expect(
                        refused.complained.contains(
                            "an upgrade is under way; give the order again when it has ended"
                        ),
                        "\(refused)"
                    )
                }
                let admin = HTTPClient(path: stand.scenario.path("admin"))
                let order = Array(#"{"rule":"bare","to":"observe"}"#.utf8)
                let answer = try admin.send("POST", "/rollout/change", content: order)
                expectEqual(answer.status, 409)
                try expectEqual(stand.gateway.client().send("GET", "/v1/bare").status, 401)
                unlink(folder + "alive")
                try stand.awaitLine("nothing has changed: the new process has ended")
                try expectEqual(run(stand, "rollout", "bare", "observe").status, 0)
                try expectEqual(run(stand, "origins", "drain", Self.second, "--yes").status, 0)
                try expectEqual(stand.gateway.client().send("GET", "/v1/bare").status, 200)
            }
        }

        /// An impostor that is ready when there is a file `go`.
        private static let readyLater = """
            say('started')
            while not os.path.exists(folder + 'go'): time.sleep(0.05)
            s.send(bytes([3] + [0] * 8))
            take()
            say('taken')
            time.sleep(600)

            """

        @Test func `a reload while the new process starts ends the upgrade, not the reload`() throws
        {
            try withImpostor(Self.readyLater) { stand, folder in
                kill(stand.gateway.child.identifier, SIGUSR2)
                try stand.awaitLine("started")
                kill(stand.gateway.child.identifier, SIGHUP)
                try stand.awaitLine("portcullis.yaml: generation 2")
                try "".write(toFile: folder + "go", atomically: false, encoding: .utf8)
                try stand.awaitLine(
                    "nothing has changed: the configuration was read again meanwhile; try again"
                )
                try expectEqual(stand.gateway.client().send("GET", "/v1/bare").status, 401)
            }
        }

        @Test func `a gateway that is told to end while the new process starts hands nothing over`()
            throws
        {
            try withImpostor(Self.readyLater) { stand, folder in
                // An idle connection, for which a draining gateway waits.
                let client = try stand.connection()
                kill(stand.gateway.child.identifier, SIGUSR2)
                try stand.awaitLine("started")
                kill(stand.gateway.child.identifier, SIGTERM)
                try stand.awaitLine("draining")
                try "".write(toFile: folder + "go", atomically: false, encoding: .utf8)
                try stand.awaitLine("nothing has changed: the gateway ends")
                try expectEqual(client.ask(stand.keys[0].get("/v1/bare")).status, 200)
            }
        }

        @Test func `a gateway that is told to end in the hand-over passes that on`() throws {
            let lines = """
                import signal
                def end(number, frame):
                    os.write(2, b'told to end ')
                    os._exit(0)
                signal.signal(signal.SIGTERM, end)
                s.send(bytes([3] + [0] * 8))
                take()
                say('taken')
                while not os.path.exists(folder + 'go'): time.sleep(0.05)
                os.unlink(folder + 'alive')
                time.sleep(0.5)
                s.send(bytes([6]))
                time.sleep(600)

                """
            try withImpostor(lines) { stand, folder in
                kill(stand.gateway.child.identifier, SIGUSR2)
                try stand.awaitLine("taken")
                kill(stand.gateway.child.identifier, SIGTERM)
                try stand.awaitLine("who serves afterwards obeys the signal")
                try "".write(toFile: folder + "go", atomically: false, encoding: .utf8)
                // A machine that is too busy for the hand-over's time has the old one end.
                try stand.awaitLog("the end of the one that serves") { log in
                    log.contains("told to end")
                        || log.contains("upgrade: refused") && log.contains("draining")
                }
            }
        }

        @Test func `the watchdog is fed while loops stand still, and a hung hand-over ends`() throws
        {
            let socket = "/tmp/notice-\(UUID().uuidString.prefix(13))"
            let manager = try NoticeSocket(socket)
            defer { unlink(socket) }
            let lines = "s.send(bytes([3] + [0] * 8))\ntake()\nsay('taken')\ntime.sleep(600)\n"
            let outer = ["/usr/bin/env", "NOTIFY_SOCKET=\(socket)", "WATCHDOG_USEC=900000"]
            try withImpostor(lines, within: outer) { stand, folder in
                kill(stand.gateway.child.identifier, SIGUSR2)
                try stand.awaitLine("taken")
                for _ in 0..<5 {
                    manager.forget()
                    try manager.wait(for: "WATCHDOG=1")
                }
                #expect(!stand.gateway.child.complained.contains("upgrade: refused"))
                unlink(folder + "alive")
                try stand.awaitLine("the new process hangs: it has said nothing for")
                let raw = stand.keys[0].get("/v1/bare")
                try expectEqual(stand.gateway.client().send(raw: raw).status, 200)
                try expectEqual(stand.gateway.client().send(raw: raw).status, 401)
            }
        }

        @Test func `a process that hangs after it has taken over costs the old one one wait`()
            throws
        {
            let stand = try stand()
            defer { stand.end() }
            let kept = try (0..<20).map { _ in try stand.connection() }
            try stand.upgrade()
            let process = try #require(stand.processes.last)
            kill(process, SIGSTOP)
            defer { kill(process, SIGCONT) }
            let clock = ContinuousClock()
            let time = try clock.measure {
                for client in kept[..<15] {
                    let answer = try client.ask(stand.keys[0].get("/v1/bare"))
                    expectEqual(answer.reason, "store-unavailable")
                }
            }
            // An event loop waits 2 s, and there are two. Fifteen waits would be 30 s.
            #expect(time < .seconds(25), "\(time)")
            try stand.awaitLine("does not answer this one")
            kill(process, SIGCONT)
            try stand.awaitLine("answers again")
            try expectEqual(kept[16].ask(stand.keys[1].get("/v1/bare")).status, 200)
        }
    }
}
