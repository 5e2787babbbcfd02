import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// The program under a service manager: its messages, and the sockets it is started with.
    struct SupervisorScenarios {
        private static let rules = """
            - id: plain
              match: { path: /plain }
              mode: off
            """

        /// A folder with a configuration.
        private static func scenario(more: String = "", loops: Int = 2) throws -> Scenario {
            let scenario = try Scenario()
            let origin = try scenario.origin()
            try scenario.configure(
                origin: "127.0.0.1:\(origin.port)",
                rules: rules,
                more: more,
                loops: loops
            )
            return scenario
        }

        private static func under(_ socket: String, _ variables: String...) -> [String] {
            ["/usr/bin/env", "NOTIFY_SOCKET=\(socket)"] + variables
        }

        @Test(arguments: ["path", "abstract"])
        func `start, reload and end are told, each when it has happened`(_ kind: String) throws {
            let scenario = try Self.scenario()
            defer { scenario.end() }
            let name = "notice-\(UUID().uuidString.prefix(13))"
            let socket = kind == "path" ? "/tmp/\(name)" : "@" + name
            let manager = try NoticeSocket(socket)
            defer { unlink("/tmp/\(name)") }
            let gateway = try scenario.serve(within: Self.under(socket))
            let ready = try manager.wait(for: "READY=1")
            expectEqual(ready.count, 1)
            #expect(ready[0].contains("STATUS=Serving, generation 1: 2 rules, 0 keys"))
            try expectEqual(gateway.client().send("GET", "/plain").status, 200)

            manager.forget()
            let before = Self.monotonicMicroseconds
            gateway.child.signal(SIGHUP)
            let reload = try manager.wait(for: "READY=1")
            expectEqual(reload.count, 2)
            let lines = reload[0].split(separator: "\n")
            expectEqual(lines.first, "RELOADING=1")
            let moment = try #require(lines.first { $0.hasPrefix("MONOTONIC_USEC=") })
            let microseconds = try #require(UInt64(moment.dropFirst("MONOTONIC_USEC=".count)))
            #expect((before...Self.monotonicMicroseconds).contains(microseconds))
            #expect(reload[1].contains("generation 2"))

            // A refused one ends, too: the manager waits for READY=1.
            manager.forget()
            try scenario.write("portcullis.yaml", "listen: nowhere")
            gateway.child.signal(SIGHUP)
            let refused = try manager.wait(for: "READY=1")
            expectEqual(refused.last?.contains("generation 2"), true)
            expectEqual(refused.last?.contains("last reload refused"), true)

            manager.forget()
            try expectEqual(gateway.stop(), 0)
            try expectEqual(manager.wait(for: "STOPPING=1").count, 1)
        }

        private static var monotonicMicroseconds: UInt64 {
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1_000
        }

        @Test func `systemd accepts the units that ship`() throws {
            guard let analyze = Scenario.tool("systemd-analyze") else { return }
            let scenario = try Scenario()
            defer { scenario.end() }
            let deploy = URL(filePath: #filePath).resolvingSymlinksInPath()
                .deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().appending(path: "deploy")
            let names = ["portcullis.service", "portcullis.socket"]
            for name in names {
                let text = try String(contentsOf: deploy.appending(path: name), encoding: .utf8)
                // The program is not installed here.
                try scenario.write(
                    name,
                    text.replacing("/usr/local/bin/portcullis", with: "/bin/true")
                )
            }
            let outcome = try scenario.run(analyze, ["verify"] + names.map(scenario.path))
            expectEqual(outcome.status, 0, "\(outcome.complained)")
            expectEqual(outcome.complained, "")
        }

        @Test func `a start that is refused is never ready`() throws {
            let scenario = try Self.scenario(more: "timeouts: { head: nonsense }")
            defer { scenario.end() }
            let manager = try NoticeSocket(scenario.path("notice"))
            let program = try #require(Scenario.program)
            let words = Self.under(scenario.path("notice"))
            let arguments =
                words.dropFirst() + [program, "serve", scenario.path("portcullis.yaml")]
            try expectEqual(scenario.run(words[0], Array(arguments)).status, 1)
            expectEqual(manager.next(within: 0), nil)
        }

        @Test func `while all loops answer, the watchdog is fed`() throws {
            let scenario = try Self.scenario()
            defer { scenario.end() }
            let socket = scenario.path("notice")
            let manager = try NoticeSocket(socket)
            let gateway = try scenario.serve(within: Self.under(socket, "WATCHDOG_USEC=300000"))
            try manager.wait(for: "READY=1")
            for _ in 0..<3 {
                manager.forget()
                try manager.wait(for: "WATCHDOG=1")
            }
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `a watchdog of another process is not fed`() throws {
            let scenario = try Self.scenario()
            defer { scenario.end() }
            let socket = scenario.path("notice")
            let manager = try NoticeSocket(socket)
            let gateway = try scenario.serve(
                within: Self.under(socket, "WATCHDOG_USEC=3000", "WATCHDOG_PID=1")
            )
            try manager.wait(for: "READY=1")
            try expectEqual(gateway.stop(), 0)
            let told = try manager.wait(for: "STOPPING=1")
            #expect(!told.contains { $0.contains("WATCHDOG") })
        }

        // MARK: Sockets

        /// Binds a socket, starts the program with it as systemd does, and writes the port that the
        /// system has chosen into its configuration.
        private static let launcher = """
            import os, socket, sys
            file, program = sys.argv[1:3]
            s = socket.socket()
            s.bind(("127.0.0.1", 0))
            s.listen(128)
            port = s.getsockname()[1]
            text = open(file).read()
            text = text.replace("address: 127.0.0.1:0", "address: 127.0.0.1:%d" % port, 1)
            open(file, "w").write(text)
            stray = socket.socket(socket.AF_UNIX)
            stray.bind(file + ".stray")
            stray.listen(1)
            pair = socket.socketpair()
            first = os.fork() if "twice" in sys.argv else 0
            if first:
                os.waitpid(first, 0)
            for index, given in enumerate((s, stray, pair[0])):
                os.dup2(given.fileno(), 13 + index)
            for place in (3, 4, 5):
                os.dup2(place + 10, place, True)
            os.closerange(6, 64)
            os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="3")
            os.environ["LISTEN_FDNAMES"] = "clients:stray:pair"
            os.execv(program, [program, "serve", file])
            """

        private static func activated(_ scenario: Scenario, _ words: String...) throws
            -> GatewayProcess?
        {
            guard let python = Scenario.tool("python3"), let program = Scenario.program else {
                return nil
            }
            try scenario.write("launch.py", launcher)
            let file = scenario.path("portcullis.yaml")
            let arguments = [scenario.path("launch.py"), file, program] + words
            return try GatewayProcess(try scenario.start(python, arguments))
        }

        @Test func `a listener takes the socket that systemd gives, and says which it does not`()
            throws
        {
            let scenario = try Self.scenario()
            defer { scenario.end() }
            guard let gateway = try Self.activated(scenario) else { return }
            try expectEqual(
                gateway.complaints(of: "\(gateway.port), a socket of the service manager"),
                1
            )
            try expectEqual(gateway.complaints(of: "stray at unix:"), 1)
            try expectEqual(gateway.complaints(of: "pair is no listening stream socket"), 1)
            // All event loops accept from it.
            for _ in 0..<20 {
                try expectEqual(gateway.client().send("GET", "/plain").status, 200)
            }
            try expectEqual(gateway.stop(), 0)
        }

        /// A socket of its own would be shut to new clients while the gateway drains, and the
        /// kernel's filter would stay on it for ever.
        @Test func `clients that connect while one gateway ends are served by the next`() throws {
            let scenario = try Self.scenario(more: "timeouts: { drain: 30s }")
            defer { scenario.end() }
            guard let first = try Self.activated(scenario, "twice") else { return }
            try expectEqual(first.client().send("GET", "/plain").status, 200)
            // The launcher holds the socket, and starts the program once more behind this one.
            let process = try first.complaints(of: "event loops, ")
            expectEqual(process, 1)
            let child = try Self.child(of: first.child.identifier)
            kill(child, SIGTERM)
            let waiting = try (0..<20).map { _ in try Wire(port: first.port) }
            for client in waiting { try client.send("GET /plain HTTP/1.1\r\nHost: a\r\n\r\n") }
            for client in waiting { try expectEqual(client.readResponse().status, 200) }
            // The first may have served them all, and the launcher has no use for a signal.
            try first.child.wait(for: "second start") { _, complained in
                complained.components(separatedBy: "event loops, ").count > 2 ? () : nil
            }
            try expectEqual(first.stop(), 0)
        }

        /// The process that another one has started.
        private static func child(of parent: Int32) throws -> Int32 {
            let path = "/proc/\(parent)/task/\(parent)/children"
            let text = try String(contentsOfFile: path, encoding: .utf8)
            return try #require(Int32(text.split(separator: " ").first ?? ""))
        }
    }
}
