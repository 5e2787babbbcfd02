import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Synchronization
import Testing

extension Scenarios {
    /// Sessions over an upgrade: their numbers are used once, in whichever process.
    @Suite(.enabled(if: Scenario.isPossible)) struct UpgradedSessions {
        private static let signing = Sessions.signing
        private static let target = "/v1/chat/1"

        private func open(
            _ stand: UpgradeStand,
            _ key: inout SoftwareKey
        ) throws -> SoftwareSession {
            let answer = try Wire(port: stand.gateway.port).ask(try asking(stand, &key))
            guard let session = SoftwareSession(answer: answer.body) else {
                throw ChildProcess.Failure(description: "\(answer.status) \(answer.text)")
            }
            return session
        }

        /// A request for a session.
        private func asking(_ stand: UpgradeStand, _ key: inout SoftwareKey) throws -> [UInt8] {
            let request = SoftwareKey.Request(
                method: "POST",
                target: Sessions.target,
                challenge: try stand.gateway.challenges("assertion", stand.gateway.client())[0]
            )
            let proof = key.proof(of: request, signing: Self.signing)
            return Array((HTTPClient.head("POST", Sessions.target, proof.fields) + "\r\n").utf8)
        }

        /// An upload of which half is there; answers what is left to send.
        private func begin(
            _ stand: UpgradeStand,
            _ session: inout SoftwareSession,
            _ raws: inout [[UInt8]]
        ) throws -> (Wire, [UInt8]) {
            let content = [UInt8](repeating: 7, count: 50_000)
            let request = SoftwareKey.Request(method: "POST", target: Self.target, content: content)
            let made = session.proof(of: request, signing: Self.signing)
            let proof = try #require(made)
            let fields =
                proof.fields + [("Content-Length", "50000"), ("Expect", "100-continue")]
            let head = Array((HTTPClient.head("POST", Self.target, fields) + "\r\n").utf8)
            let upload = try Wire(port: stand.gateway.port)
            try upload.send(head)
            try expectEqual(upload.readResponse().status, 100)
            try upload.send(Array(content.prefix(20_000)))
            raws.append(head + content)
            return (upload, Array(content.dropFirst(20_000)))
        }

        private func get(_ session: inout SoftwareSession) throws -> [UInt8] {
            let request = SoftwareKey.Request(method: "GET", target: Self.target)
            let made = session.proof(of: request, signing: Self.signing)
            let proof = try #require(made)
            return Array((HTTPClient.head("GET", Self.target, proof.fields) + "\r\n").utf8)
        }

        @Test func `a session goes on at both processes, and no number is used twice`() throws {
            let stand = try UpgradeStand(rules: Sessions.rules, keys: 2)
            defer { stand.end() }
            var session = try open(stand, &stand.keys[0])
            var raws: [[UInt8]] = []
            for _ in 0..<3 {
                raws.append(try get(&session))
                try expectEqual(
                    Wire(port: stand.gateway.port).ask(raws[raws.count - 1]).status,
                    200
                )
            }
            // One that is never sent before the upgrade: its number is below the highest.
            let skipped = try get(&session)
            raws.append(try get(&session))
            try expectEqual(Wire(port: stand.gateway.port).ask(raws[3]).status, 200)
            let (upload, rest) = try begin(stand, &session, &raws)
            let kept = try (0..<10).map { _ in try stand.connection() }

            try stand.upgrade()

            try upload.send(rest)
            try expectEqual(upload.readResponse().status, 200)
            for index in 0..<3 {
                raws.append(try get(&session))
                try expectEqual(kept[index].ask(raws[raws.count - 1]).status, 200, "old, \(index)")
                raws.append(try get(&session))
                let new = try Wire(port: stand.gateway.port).ask(raws[raws.count - 1])
                expectEqual(new.status, 200, "new, \(index)")
            }
            try expectEqual(Wire(port: stand.gateway.port).ask(skipped).status, 200)
            raws.append(skipped)
            for (index, raw) in raws.enumerated() {
                let replay = try Wire(port: stand.gateway.port).ask(raw)
                expectEqual(replay.reason, "session-replayed", "\(index) at the new one")
            }
            for (wire, raw) in zip(kept[3..<8], [raws[0], raws[4], raws[5], raws[6], skipped]) {
                try expectEqual(wire.ask(raw).reason, "session-replayed", "at the old one")
            }
            // Opened on a connection that the old process has, and good at the new one, and behind
            // another upgrade.
            let given = try kept[8].ask(try asking(stand, &stand.keys[1]))
            expectEqual(given.value("connection"), "close")
            var fresh = try #require(SoftwareSession(answer: given.body))
            try expectEqual(Wire(port: stand.gateway.port).ask(try get(&fresh)).status, 200)
            try stand.upgrade()
            let last = try get(&session)
            try expectEqual(Wire(port: stand.gateway.port).ask(last).status, 200)
            try expectEqual(Wire(port: stand.gateway.port).ask(try get(&fresh)).status, 200)
            for raw in raws + [last] {
                try expectEqual(Wire(port: stand.gateway.port).ask(raw).status, 401)
            }
        }

        @Test func `clients of sessions notice nothing of two upgrades, and no replay passes`()
            throws
        {
            let stand = try UpgradeStand(rules: Sessions.rules, keys: 4)
            defer { stand.end() }
            let isOver = Atomic(false)
            let sent = Mutex<[[UInt8]]>([])
            // Each thread has its own connection, session and part of the numbers.
            let workers = try stand.keys.map { key in
                var key = key
                var session = try open(stand, &key)
                let client = stand.gateway.client()
                return Thread.Answer { [self] in
                    var statuses: [Int: Int] = [:]
                    while !isOver.load(ordering: .relaxed) {
                        let raw = try get(&session)
                        statuses[try client.send(raw: raw).status, default: 0] += 1
                        sent.withLock { $0.append(raw) }
                    }
                    return statuses
                }
            }
            for _ in 0..<2 { try stand.upgrade() }
            isOver.store(true, ordering: .relaxed)
            for worker in workers {
                let statuses = try worker.value()
                expectEqual(statuses.keys.sorted(), [200])
                #expect(statuses[200, default: 0] >= 10)
            }
            let raws = sent.withLock { $0 }
            let replayer = stand.gateway.client()
            let admitted = try raws.suffix(1_000).count {
                try replayer.send(raw: $0).status != 401
            }
            expectEqual(admitted, 0)
            print("sessions: \(raws.count) admitted over two upgrades, pauses \(stand.pauses) ms")
        }
    }
}
