import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import Synchronization
import Testing

extension Scenarios {
    /// Upgrades of a gateway whose store decides, and enrolments over an upgrade.
    @Suite(.enabled(if: Scenario.isPossible)) struct UpgradedStores {
        enum Store: CaseIterable, Sendable { case sqlite, postgresql }

        /// A gateway on such a store, and its database; `nil` where there is no PostgreSQL.
        private func stand(
            _ store: Store,
            keys: Int = 0
        ) throws -> (stand: UpgradeStand, database: DatabaseServer?)? {
            switch store {
            case .sqlite: return (try UpgradeStand(keys: keys), nil)
            case .postgresql:
                guard DatabaseServer.programs != nil else { return nil }
                let database = try DatabaseServer()
                let address = database.address(at: database.folder)
                return (try UpgradeStand(database: address, keys: keys), database)
            }
        }

        @Test(arguments: Store.allCases)
        func `a challenge enrols one key, at whichever process`(_ store: Store) throws {
            guard let (stand, database) = try stand(store) else { return }
            defer {
                stand.end()
                database?.end()
            }
            let client = stand.gateway.client()
            let challenges = try (0..<4).map { _ in
                try stand.gateway.challenges("enrolment", client)[0]
            }
            func enrol(_ client: HTTPClient, _ challenge: String) throws -> Answer {
                try stand.gateway.enrol(Scenario.device.makeKey(), client, with: challenge)
            }
            try expectEqual(enrol(client, challenges[0]).status, 201)
            // Connections that the old process has.
            let kept = (0..<4).map { _ in HTTPClient(port: stand.gateway.port) }
            for client in kept { try expectEqual(client.send("GET", "/open").status, 200) }
            try stand.upgrade()
            func new() -> HTTPClient { HTTPClient(port: stand.gateway.port) }
            try expectEqual(enrol(kept[0], challenges[1]).status, 201)
            try expectEqual(enrol(new(), challenges[2]).status, 201)
            for (index, challenge) in challenges[0..<3].enumerated() {
                let reason = try enrol(new(), challenge).reason
                expectEqual(reason, "challenge-spent", "\(index) at the new one")
                let old = try enrol(kept[index + 1], challenge)
                expectEqual(old.reason, "challenge-spent", "\(index) at the old one")
            }
            try expectEqual(enrol(new(), challenges[3]).status, 201)
            guard let database else { return }
            // Another gateway of the database knows what the old one's connections have spent.
            try stand.scenario.configure(
                "other.yaml",
                origin: "127.0.0.1:\(stand.origin.port)",
                rules: UpgradeStand.rules,
                database: database.address(at: database.folder)
            )
            let other = try stand.scenario.serve("other.yaml")
            for challenge in challenges {
                let key = Scenario.device.makeKey()
                let answer = try other.enrol(key, other.client(), with: challenge)
                expectEqual(answer.reason, "challenge-spent")
            }
        }

        @Test func `on a shared database an old process still finds who has no key`() throws {
            guard let (stand, database) = try stand(.postgresql, keys: 2) else { return }
            defer {
                stand.end()
                database?.end()
            }
            let kept = try (0..<3).map { _ in try stand.connection() }
            try stand.upgrade()
            var stranger = Scenario.device.makeKey()
            try expectEqual(kept[0].ask(stranger.get("/v1/bare")).reason, "key-unknown")
            // Enrolled at the new one.
            let client = HTTPClient(port: stand.gateway.port)
            try expectEqual(stand.gateway.enrol(stranger, client).status, 201)
            try expectEqual(kept[1].ask(stranger.get("/v1/bare")).status, 200)
            try expectEqual(kept[2].ask(stand.keys[0].get("/v1/bare")).status, 200)
        }

        @Test func `on a shared database clients notice nothing of two upgrades`() throws {
            guard let (stand, database) = try stand(.postgresql, keys: 4) else { return }
            defer {
                stand.end()
                database?.end()
            }
            let isOver = Atomic(false)
            let sent = Mutex<[[UInt8]]>([])
            let workers = stand.keys.enumerated().map { number, key in
                var key = key
                let client = HTTPClient(port: stand.gateway.port)
                return Thread.Answer {
                    var answers: [String: Int] = [:]
                    var challenge: String?
                    // A busy disk may leave time for few requests until the last upgrade is over.
                    while !isOver.load(ordering: .relaxed) || answers.values.reduce(0, +) < 5 {
                        if number % 2 == 1 {
                            challenge =
                                try challenge ?? stand.gateway.challenges("assertion", client)[0]
                        }
                        let path = number % 2 == 1 ? "/v1/signed" : "/v1/bare"
                        let raw = key.get(path, challenge: challenge)
                        let answer = try client.send(raw: raw)
                        answers["\(answer.status) \(answer.reason)", default: 0] += 1
                        challenge = answer.value("App-Attest-Challenge")
                        sent.withLock { $0.append(raw) }
                    }
                    return answers
                }
            }
            for _ in 0..<2 { try stand.upgrade() }
            isOver.store(true, ordering: .relaxed)
            for worker in workers {
                let answers = try worker.value()
                expectEqual(answers.keys.sorted(), ["200 "])
                #expect(answers["200 ", default: 0] >= 5)
            }
            let raws = sent.withLock { $0 }
            let replayer = HTTPClient(port: stand.gateway.port)
            let admitted = try raws.suffix(500).count { try replayer.send(raw: $0).status != 401 }
            expectEqual(admitted, 0)
            print("postgresql: \(raws.count) admitted over two upgrades, \(stand.pauses) ms")
        }
    }
}
