import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Upgrades of a gateway that systemd has given its socket.
    @Suite(.enabled(if: Scenario.tool("python3") != nil)) struct ActivatedUpgrades {
        /// Binds a socket, writes its port into the configuration, and becomes the program, with
        /// the socket as systemd gives it (sd_listen_fds(3)).
        private static let launcher = """
            import os, socket, sys
            program, file = sys.argv[1], sys.argv[-1]
            s = socket.socket()
            s.bind(("127.0.0.1", 0))
            s.listen(128)
            text = open(file).read()
            port = "127.0.0.1:%d" % s.getsockname()[1]
            open(file, "w").write(text.replace("address: 127.0.0.1:0", "address: " + port, 1))
            os.dup2(s.fileno(), 13)
            os.dup2(13, 3, True)
            os.closerange(4, 64)
            os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="clients")
            os.execv(program, sys.argv[1:])
            """

        /// The sockets that a process listens on, as the kernel names them.
        private func sockets(of process: Int32) -> Set<String> {
            let folder = "/proc/\(process)/fd"
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            let found = names.compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
            }
            return Set(found.filter { $0.hasPrefix("socket:") })
        }

        @Test func `the next process has the manager's socket, and so has the one behind it`()
            throws
        {
            let python = try #require(Scenario.tool("python3"))
            let stand = try UpgradeStand(keys: 1, within: [python, "-c", Self.launcher])
            defer { stand.end() }
            let port = stand.gateway.port
            let given = "listening on 127.0.0.1:\(port), a socket of the service manager"
            try stand.awaitLine(given)
            let first = stand.gateway.child.identifier
            var old = sockets(of: first)
            for number in 1...2 {
                let kept = try stand.connection()
                let raw = stand.keys[0].get("/v1/bare")
                try expectEqual(kept.ask(raw).status, 200)
                try stand.upgrade()
                kept.close()
                try stand.awaitLine(given, times: number + 1)
                let process = try #require(stand.processes.last)
                let new = sockets(of: process)
                #expect(!new.isDisjoint(with: old))
                old = new
                for _ in 0..<20 {
                    try expectEqual(stand.gateway.client().send("GET", "/open").status, 200)
                }
                try expectEqual(Wire(port: port).ask(raw).status, 401)
                try expectEqual(Wire(port: port).ask(stand.keys[0].get("/v1/bare")).status, 200)
            }
            // The first has gone, and has left the socket as it is.
            try stand.awaitLine("ended", times: 1)
            try expectEqual(Wire(port: port).ask(stand.keys[0].get("/v1/bare")).status, 200)
        }
    }
}
