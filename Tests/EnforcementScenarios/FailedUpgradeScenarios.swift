import DeviceKey
import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// A new process that can't take over: the old one goes on.
    @Suite(.enabled(if: Scenario.isPossible)) struct FailedUpgrades {
        /// Still served, with all that was spent: what was admitted before is no good again.
        private func expectServing(_ stand: UpgradeStand, replaying raw: [UInt8]) throws {
            let client = stand.gateway.client()
            try expectEqual(client.send(raw: raw).status, 401)
            let challenge = try stand.gateway.challenges("assertion", client)[0]
            let fresh = stand.keys[0].get("/v1/signed", challenge: challenge)
            try expectEqual(client.send(raw: fresh).status, 200)
            // The store is still its own, and it hears of revocations.
            let config = stand.scenario.path("portcullis.yaml")
            let id = stand.keys[1].keyID.base64
            let revoked = try stand.scenario.portcullis("keys", "revoke", "--config", config, id)
            #expect(revoked.status == 0 || revoked.complained.contains("revoked"), "\(revoked)")
            try expectEqual(client.send(raw: stand.keys[1].get("/v1/bare")).reason, "key-revoked")
            let second = try stand.scenario.portcullis("serve", config)
            expectEqual(second.status, 1)
        }

        @Test func `a configuration that is refused changes nothing, and the command says why`()
            throws
        {
            let stand = try UpgradeStand(keys: 2)
            defer { stand.end() }
            let file = stand.scenario.path("portcullis.yaml")
            let good = try String(contentsOfFile: file, encoding: .utf8)
            let client = stand.gateway.client()
            let challenge = try stand.gateway.challenges("assertion", client)[0]
            let raw = stand.keys[0].get("/v1/signed", challenge: challenge)
            try expectEqual(client.send(raw: raw).status, 200)
            try stand.scenario.write("portcullis.yaml", good + "\nnonsense: 1\n")
            kill(stand.gateway.child.identifier, SIGUSR2)
            try stand.awaitLine("upgrade: refused, and nothing has changed")
            #expect(stand.gateway.child.complained.contains("can't serve"))
            #expect(stand.gateway.child.complained.contains("nonsense"))
            // Another store is no store of this gateway's.
            try stand.scenario.write(
                "portcullis.yaml",
                good.replacing("portcullis.db", with: "other.db")
            )
            let refused = try stand.scenario.portcullis("upgrade", "--config", file)
            expectEqual(refused.status, 1)
            #expect(refused.complained.contains("nothing has changed"), "\(refused)")
            #expect(refused.complained.contains("can't change `store`"), "\(refused)")
            // Fewer event loops would leave sockets that nobody accepts from.
            try stand.scenario.write(
                "portcullis.yaml",
                good.replacing("event_loops: 2", with: "event_loops: 1")
            )
            let fewer = try stand.scenario.portcullis("upgrade", "--config", file)
            #expect(fewer.complained.contains("can't lower `event_loops`"), "\(fewer)")
            try stand.scenario.write("portcullis.yaml", good)
            try expectServing(stand, replaying: raw)
            try stand.upgrade()
            try expectEqual(stand.gateway.client().send(raw: raw).status, 401)
        }

        /// What the program at the gateway's path does in the place of the next version, by the
        /// protocol's first bytes: 3 is READY, 6 is TAKEN.
        enum Impostor: String, CaseIterable, Sendable {
            case endsAtOnce = "sys.exit(7)"
            case saysNonsense = "s.send(b'hello'); s.recv(9)"
            case endsWhenReady = "s.send(bytes([3] + [0] * 8))"
            case endsWithTheState = "s.send(bytes([3] + [0] * 8)); take()"
            case saysNonsenseWithTheState =
                "s.send(bytes([3] + [0] * 8)); take(); s.send(b'x'); s.recv(9)"
            case endsWhenTaken = """
                s.send(bytes([3] + [0] * 8)); take(); s.send(bytes([6])); s.close()
                """
        }

        /// Messages of the protocol on descriptor 3. It takes descriptors, too.
        private static let script = """
            #!\(Scenario.tool("python3") ?? "")
            import os, socket, sys
            s = socket.socket(fileno=3)
            def take():
                kind = 0
                while True:
                    data, fds, flags, where = socket.recv_fds(s, 1 << 17, 250)
                    if not data: sys.exit(9)
                    if data[0] == 5 and data[1] == 1: return

            """

        private func stand(_ program: String) throws -> UpgradeStand? {
            guard Scenario.tool("python3") != nil, let built = Scenario.program else { return nil }
            try UpgradeStand.place(built, at: program)
            return try UpgradeStand(keys: 2, program: program)
        }

        private func replace(_ program: String, with lines: String) throws {
            try FileManager.default.removeItem(atPath: program)
            try lines.write(toFile: program, atomically: true, encoding: .utf8)
            chmod(program, 0o755)
        }

        @Test(arguments: Impostor.allCases)
        func `a new process that fails leaves the old one serving`(_ impostor: Impostor) throws {
            let program = NSTemporaryDirectory() + "portcullis-\(UUID().uuidString)"
            defer { unlink(program) }
            guard let stand = try stand(program) else { return }
            defer { stand.end() }
            let client = stand.gateway.client()
            let challenge = try stand.gateway.challenges("assertion", client)[0]
            let raw = stand.keys[0].get("/v1/signed", challenge: challenge)
            try expectEqual(client.send(raw: raw).status, 200)
            try replace(program, with: Self.script + impostor.rawValue + "\n")
            kill(stand.gateway.child.identifier, SIGUSR2)
            // One that ends in the moment of GO may have taken it: then it was the one to decide.
            try stand.awaitLog("end of the upgrade") {
                $0.contains("upgrade: refused") || $0.contains("serves from now on")
            }
            guard !stand.gateway.child.complained.contains("serves from now on") else {
                expectEqual(impostor, .endsWhenTaken)
                return
            }
            try expectServing(stand, replaying: raw)
            // A program that can take over is taken.
            try FileManager.default.removeItem(atPath: program)
            guard let built = Scenario.program else { return }
            try UpgradeStand.place(built, at: program)
            try stand.upgrade()
            try expectEqual(stand.gateway.client().send(raw: raw).status, 401)
        }

        @Test func `where there is no program any more, the command says so and nothing changes`()
            throws
        {
            let program = NSTemporaryDirectory() + "portcullis-\(UUID().uuidString)"
            defer { unlink(program) }
            guard let stand = try stand(program) else { return }
            defer { stand.end() }
            let client = stand.gateway.client()
            let challenge = try stand.gateway.challenges("assertion", client)[0]
            let raw = stand.keys[0].get("/v1/signed", challenge: challenge)
            try expectEqual(client.send(raw: raw).status, 200)
            unlink(program)
            let file = stand.scenario.path("portcullis.yaml")
            let refused = try stand.scenario.portcullis("upgrade", "--config", file)
            expectEqual(refused.status, 1)
            #expect(refused.complained.contains("\(program) can't be started"), "\(refused)")
            try expectServing(stand, replaying: raw)
        }

        @Test func `after the old program is moved away, what is at its path is started`() throws {
            let program = NSTemporaryDirectory() + "portcullis-\(UUID().uuidString)"
            defer { for file in [program, program + "-old"] { unlink(file) } }
            guard let stand = try stand(program), let built = Scenario.program else { return }
            defer { stand.end() }
            try FileManager.default.moveItem(atPath: program, toPath: program + "-old")
            try "#!/bin/sh\nexit 7\n".write(toFile: program, atomically: true, encoding: .utf8)
            chmod(program, 0o755)
            let file = stand.scenario.path("portcullis.yaml")
            let refused = try stand.scenario.portcullis("upgrade", "--config", file)
            expectEqual(refused.status, 1)
            #expect(refused.complained.contains("the new process has ended"), "\(refused)")
            // Another file with the same content, as a former version would be.
            try FileManager.default.removeItem(atPath: program)
            try FileManager.default.copyItem(atPath: built, toPath: program)
            let done = try stand.scenario.portcullis("upgrade", "--config", file)
            expectEqual(done.status, 0, "\(done)")
            #expect(done.printed.contains(", \(program); accepting paused for "), "\(done)")
            expectEqual(done.complained, "")
            try stand.awaitLine("upgrade: process ")
            let process = try #require(stand.processes.first)
            let link = "/proc/\(process)/exe"
            try expectEqual(
                FileManager.default.destinationOfSymbolicLink(atPath: link),
                URL(fileURLWithPath: program).resolvingSymlinksInPath().path
            )
        }

        @Test func `where the path is a link that was switched, the other version is started`()
            throws
        {
            let folder = NSTemporaryDirectory() + "portcullis-\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: folder) }
            guard let built = Scenario.program else { return }
            for version in ["v1", "v2"] {
                let place = "\(folder)/\(version)"
                try FileManager.default.createDirectory(
                    atPath: place,
                    withIntermediateDirectories: true
                )
                try FileManager.default.copyItem(atPath: built, toPath: place + "/portcullis")
            }
            let program = folder + "/portcullis"
            func link(to version: String) throws {
                unlink(program)
                symlink("\(version)/portcullis", program)
            }
            try link(to: "v1")
            let stand = try UpgradeStand(program: program)
            defer { stand.end() }
            let file = stand.scenario.path("portcullis.yaml")
            for (count, version) in ["v2", "v1"].enumerated() {
                try link(to: version)
                let done = try stand.scenario.portcullis("upgrade", "--config", file)
                expectEqual(done.status, 0, "\(done)")
                #expect(done.printed.contains(", \(program); accepting paused for "), "\(done)")
                expectEqual(done.complained, "")
                try stand.awaitLine("event loops, ", times: count + 2)
                let process = try #require(stand.processes.last)
                let link = "/proc/\(process)/exe"
                let running = try FileManager.default.destinationOfSymbolicLink(atPath: link)
                #expect(running.hasSuffix("/\(version)/portcullis"), "\(running)")
            }
        }

        @Test func `while one upgrade is made, another is refused, and clients are served`() throws
        {
            let program = NSTemporaryDirectory() + "portcullis-\(UUID().uuidString)"
            defer { unlink(program) }
            guard let stand = try stand(program) else { return }
            defer { stand.end() }
            // It starts, says that it lives, and does nothing before it is told to.
            try replace(
                program,
                with: Self.script + "print('started', file=sys.stderr, flush=True)\ns.recv(9)\n"
                    + "import threading, time\n"
                    + "def live():\n  while True: s.send(bytes([10])); time.sleep(0.2)\n"
                    + "threading.Thread(target=live, daemon=True).start()\n"
                    + "open('\(stand.scenario.path("go"))').read()\n"
            )
            mkfifo(stand.scenario.path("go"), 0o600)
            kill(stand.gateway.child.identifier, SIGUSR2)
            try stand.awaitLine("started")
            let file = stand.scenario.path("portcullis.yaml")
            let second = try stand.scenario.portcullis("upgrade", "--config", file)
            expectEqual(second.status, 1)
            #expect(second.complained.contains("being made already"), "\(second)")
            try expectEqual(
                stand.gateway.client().send(raw: stand.keys[0].get("/v1/bare")).status,
                200
            )
            try "".write(toFile: stand.scenario.path("go"), atomically: false, encoding: .utf8)
            try stand.awaitLine("upgrade: refused", times: 2)
        }
    }
}
