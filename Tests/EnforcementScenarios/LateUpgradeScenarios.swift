import ConfigurationReading
import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import Testing

@testable import Gateway

extension Scenarios {
    /// A new process that lives, and does not do its part: the old one ends it, and goes on.
    struct LateUpgrades {
        /// By the protocol's first bytes: 1 is PLAN, 3 is READY, 5 is STATE, 6 is TAKEN, 10 is
        /// ALIVE.
        enum Impostor: String, CaseIterable, Sendable {
            case hangsBeforeReady = "time.sleep(600)"
            case hangsWithTheState = "s.send(bytes([3] + [0] * 8)); time.sleep(600)"
            case hangsBeforeTaken = "s.send(bytes([3] + [0] * 8)); take(); time.sleep(600)"
            case livesAndIsNeverReady = "live()"
            case livesAndNeverTakes = "s.send(bytes([3] + [0] * 8)); take(); live()"
            case isReadyTwice =
                "s.send(bytes([3] + [0] * 8)); s.send(bytes([3] + [0] * 8)); time.sleep(600)"
            case tellsOfAPlan = "s.send(plan); time.sleep(600)"
            /// As the program does when it is of a version with another protocol.
            case readsAnotherVersion = "sys.exit(1)"

            var refusal: String {
                switch self {
                case .hangsBeforeReady, .hangsWithTheState, .hangsBeforeTaken:
                    "the new process hangs: it has said nothing for 0.3 seconds"
                case .livesAndIsNeverReady, .livesAndNeverTakes:
                    "the new process was not ready within 0.7 seconds"
                case .isReadyTwice, .tellsOfAPlan:
                    "the new process is of a version that can't take over"
                case .readsAnotherVersion: "the new process has ended; the log has what it said"
                }
            }

            /// Only what the refusal names is short, since a busy machine starts a program late.
            var patience: Upgrade.Patience {
                let (short, long) = (Duration.milliseconds(700), Duration.seconds(120))
                return switch self {
                case .hangsBeforeReady, .hangsWithTheState, .hangsBeforeTaken:
                    Upgrade.Patience(ready: long, silence: .milliseconds(300), handover: long)
                case .livesAndIsNeverReady, .livesAndNeverTakes:
                    Upgrade.Patience(ready: short, silence: long, handover: short)
                case .isReadyTwice, .tellsOfAPlan, .readsAnotherVersion:
                    Upgrade.Patience(ready: long, silence: long, handover: long)
                }
            }
        }

        private func program(_ impostor: Impostor, in scenario: Scenario) throws -> String? {
            guard let python = Scenario.tool("python3") else { return nil }
            let file = scenario.path("impostor")
            try scenario.write(
                "impostor",
                """
                #!\(python)
                import socket, sys, time
                s = socket.socket(fileno=3)
                plan = s.recv(1 << 17)
                def live():
                    while True:
                        s.send(bytes([10]))
                        time.sleep(0.05)
                def take():
                    while True:
                        data, fds, flags, where = socket.recv_fds(s, 1 << 17, 250)
                        if not data: sys.exit(9)
                        if data[0] == 5 and data[1] == 1: return
                \(impostor.rawValue)

                """
            )
            chmod(file, 0o755)
            return file
        }

        @Test(arguments: Impostor.allCases)
        func `one that hangs or says something else is ended, and the old one serves`(
            _ impostor: Impostor
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            guard let program = try program(impostor, in: scenario) else { return }
            try scenario.configure(
                try scenario.origin(),
                rules: StockRule.list(.bare, .signed) + Sessions.rules
            )
            var key = try scenario.imported()[0]
            let hosted = try HostedGateway(file: scenario.path("portcullis.yaml"))
            defer { hosted.stop() }
            let client = HTTPClient(port: hosted.port)
            let raw = key.get("/v1/bare")
            try expectEqual(client.send(raw: raw).status, 200)
            let server = hosted.server
            var upgrade = server.plane.queue.sync { server.makeUpgrade() }
            upgrade.program = program
            upgrade.patience = impostor.patience
            do throws(UpgradeRefusal) {
                _ = try upgrade.run()
                Issue.record("it took over")
            } catch {
                expectEqual(error.text, impostor.refusal)
            }
            // It decides and writes as before.
            try expectEqual(client.send(raw: raw).status, 401)
            try expectEqual(client.send(raw: key.get("/v1/bare")).status, 200)
            let fresh = Scenario.device.makeKey()
            let gateway = Late(port: hosted.port)
            try expectEqual(gateway.enrol(fresh, client).status, 201)
        }

        private struct Late: ServedGateway {
            let port: UInt16
            var clientPort: UInt16 { port }
        }
    }
}
