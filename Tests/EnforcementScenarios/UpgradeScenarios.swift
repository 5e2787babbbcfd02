import DeviceKey
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Telemetry
import Testing

extension Scenarios {
    /// One process takes over from another while clients are served.
    @Suite(.enabled(if: Scenario.isPossible)) struct Upgrades {
        private static func challenge(_ stand: UpgradeStand) throws -> String {
            try stand.gateway.challenges("assertion", stand.gateway.client())[0]
        }

        /// An upload that is signed: its head, which asks for 100, and its content.
        private static func upload(
            _ key: inout SoftwareKey,
            challenge: String
        ) -> (head: [UInt8], content: [UInt8]) {
            let request = SoftwareKey.Request(
                method: "POST",
                target: "/v1/signed",
                content: Array(repeating: 7, count: 50_000),
                challenge: challenge
            )
            let proof = key.proof(of: request, signing: .lines(.all, headers: []))
            let fields =
                proof.fields + [("Content-Length", "50000"), ("Expect", "100-continue")]
            let head = HTTPClient.head("POST", request.target, fields) + "\r\n"
            return (Array(head.utf8), request.content)
        }

        @Test func `what the old process has not decided is decided once, and no replay passes`()
            throws
        {
            let stand = try UpgradeStand(keys: 6)
            defer { stand.end() }
            let client = stand.gateway.client()
            let challenges = try stand.gateway.challenges("assertion", 6, client)
            // Admitted before, at the old one.
            let before = stand.keys[0].get("/v1/signed", challenge: challenges[0])
            try expectEqual(client.send(raw: before).status, 200)
            // An upload of which half is there.
            let (head, content) = Self.upload(&stand.keys[1], challenge: challenges[1])
            let upload = try Wire(port: stand.gateway.port)
            try upload.send(head)
            try expectEqual(upload.readResponse().status, 100)
            try upload.send(Array(content.prefix(20_000)))
            let kept = try (0..<8).map { _ in try stand.connection() }

            try stand.upgrade()

            try upload.send(Array(content.dropFirst(20_000)))
            let uploaded = try upload.readResponse()
            expectEqual(uploaded.status, 200)
            expectEqual(uploaded.head.value("connection"), "close")
            // On a connection that the old one has, with challenges from before.
            let late = stand.keys[2].get("/v1/signed", challenge: challenges[2])
            try expectEqual(kept[0].ask(late).status, 200)
            let bare = stand.keys[3].get("/v1/bare")
            try expectEqual(kept[1].ask(bare).status, 200)
            // At the new one, with a challenge from before, and with one that the old one asks for.
            let next = stand.keys[4].get("/v1/signed", challenge: challenges[3])
            try expectEqual(Wire(port: stand.gateway.port).ask(next).status, 200)
            let asked = Array(
                """
                POST /.well-known/app-attest/challenges HTTP/1.1\r\nHost: a\r
                Content-Length: 33\r\n\r\n{"purpose":"assertion","count":1}
                """.utf8
            )
            let given = try kept[2].ask(asked).object?["challenges"] as? [String]
            let fresh = stand.keys[5].get("/v1/signed", challenge: try #require(given?.first))
            try expectEqual(Wire(port: stand.gateway.port).ask(fresh).status, 200)

            let admitted = [before, head + content, late, bare, next, fresh]
            for (index, raw) in admitted.enumerated() {
                let replay = try Wire(port: stand.gateway.port).ask(raw)
                expectEqual(replay.status, 401, "\(index) at the new one")
            }
            for (wire, raw) in zip(kept[3...], [before, late, bare, next, fresh]) {
                try expectEqual(wire.ask(raw).status, 401, "at the old one")
            }
            // The challenge alone, with a counter that is free.
            let spent = stand.keys[3].get("/v1/signed", challenge: challenges[0])
            let refused = try Wire(port: stand.gateway.port).ask(spent)
            expectEqual(refused.reason, "challenge-spent")
            // A challenge that nobody has used is good behind two upgrades, too.
            try stand.upgrade()
            let last = stand.keys[0].get("/v1/signed", challenge: challenges[5])
            try expectEqual(Wire(port: stand.gateway.port).ask(last).status, 200)
            expectEqual(stand.origin.seen.count { $0.target.hasPrefix("/v1/") }, 7)
        }

        @Test func `an old process finishes, and its end closes nothing of the next one's`() throws
        {
            let stand = try UpgradeStand(keys: 1)
            defer { stand.end() }
            let kept = try stand.connection()
            try stand.upgrade()
            try expectEqual(kept.ask(stand.keys[0].get("/v1/bare")).status, 200)
            kept.close()
            try stand.awaitLine("ended")
            for _ in 0..<20 {
                try expectEqual(stand.gateway.client().send("GET", "/open").status, 200)
            }
            try expectEqual(
                stand.gateway.client().send(raw: stand.keys[0].get("/v1/bare")).status,
                200
            )
            kill(stand.processes[0], SIGTERM)
            try expectEqual(stand.gateway.child.waitForEnd(), 0)
            let list = try stand.scenario.portcullis(
                "keys",
                "list",
                "--config",
                stand.scenario.path("portcullis.yaml")
            )
            #expect(list.printed.contains("\t2\t"), "\(list)")
        }

        @Test func `a key is enrolled, used and revoked over an upgrade`() throws {
            let stand = try UpgradeStand()
            defer { stand.end() }
            let client = HTTPClient(port: stand.gateway.port)
            let challenge = try stand.gateway.challenges("enrolment", client)[0]
            var key = Scenario.device.makeKey()
            let spare = try (0..<2).map { _ in try stand.connection() }
            try stand.upgrade()
            // The client's connection is the old one's.
            try expectEqual(stand.gateway.enrol(key, client, with: challenge).status, 201)
            let used = stand.gateway.client()
            try expectEqual(used.send(raw: key.get("/v1/bare")).status, 200)
            try expectEqual(spare[0].ask(key.get("/v1/bare")).status, 200)
            let revoked = try stand.scenario.portcullis(
                "keys",
                "revoke",
                "--config",
                stand.scenario.path("portcullis.yaml"),
                key.keyID.base64
            )
            expectEqual(revoked.status, 0, "\(revoked)")
            try expectEqual(used.send(raw: key.get("/v1/bare")).reason, "key-revoked")
            try expectEqual(spare[1].ask(key.get("/v1/bare")).reason, "key-revoked")
        }

        @Test func `the command says which process serves and how long clients waited`() throws {
            let stand = try UpgradeStand()
            defer { stand.end() }
            let file = stand.scenario.path("portcullis.yaml")
            let outcome = try stand.scenario.portcullis("upgrade", "--config", file)
            expectEqual(outcome.status, 0, "\(outcome)")
            // The command may be answered before the line about it is read.
            try stand.awaitLine("upgrade: process ")
            let process = try #require(stand.processes.first)
            let program = try #require(Scenario.program)
            let words = "process \(process) serves, portcullis \(ProgramVersion.text), \(program)"
            #expect(outcome.printed.hasPrefix("\(words); accepting paused for "), "\(outcome)")
            #expect(outcome.printed.hasSuffix(" ms\n"))
            // Nothing was put there, which may be a mistake.
            let same = "portcullis: warning: \(program) is the same file as before; next: "
            #expect(outcome.complained.hasPrefix(same), "\(outcome)")
            try expectEqual(stand.gateway.complaints(of: "upgrade: \(program) is the same file"), 1)
            // The command reaches the new one, too, once that serves.
            try stand.awaitLine("event loops, ", times: 2)
            try expectEqual(stand.scenario.portcullis("upgrade", "--config", file).status, 0)
            try stand.awaitLine("upgrade: process ", times: 2)
            expectEqual(stand.processes.count, 2)
        }

        @Test func `under a service manager the new process becomes the main one`() throws {
            let name = "upgrade-\(UUID().uuidString.prefix(13))"
            let manager = try NoticeSocket("@" + name)
            // A socket keeps ten messages that are not read (net.unix.max_dgram_qlen), and none is
            // read while the upgrade runs.
            let stand = try UpgradeStand(
                within: ["/usr/bin/env", "NOTIFY_SOCKET=@\(name)", "WATCHDOG_USEC=6000000"]
            )
            defer { stand.end() }
            try manager.wait(for: "READY=1")
            manager.forget()
            try stand.upgrade()
            let told = try manager.wait(for: "READY=1").filter { !$0.contains("WATCHDOG") }
            #expect(told.first == "MAINPID=\(try #require(stand.processes.first))")
            // The new one feeds the watchdog, and the old one says nothing of its end.
            try stand.awaitLine("ended")
            manager.forget()
            #expect(try manager.wait(for: "WATCHDOG=1").allSatisfy { $0 == "WATCHDOG=1" })
        }
    }
}
