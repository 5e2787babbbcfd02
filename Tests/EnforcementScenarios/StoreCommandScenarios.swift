import AppAttest
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// The commands about the store as a whole: backup, check, restore.
    @Suite struct StoreCommands {
        private static let rules = StockRule.list(
            .bare,
            more: """
                - id: free
                  match: { path: /v1/free }
                  mode: enforce
                  sign: [method, target, challenge]
                  challenge: optional
                """
        )

        /// A request for a rule that takes a challenge and does not ask for one.
        private func free(_ key: inout SoftwareKey, _ challenge: String? = nil) -> [UInt8] {
            let path = "/v1/free"
            let request = SoftwareKey.Request(method: "GET", target: path, challenge: challenge)
            let signing = SigningForm.lines([.method, .target, .challenge], headers: [])
            let proof = key.proof(of: request, signing: signing)
            return Array((HTTPClient.head("GET", path, proof.fields) + "\r\n").utf8)
        }

        private func store(_ scenario: Scenario, _ words: String...) throws -> Scenario.Result {
            try scenario.portcullis(["store"] + words)
        }

        /// How an older copy comes to be the store.
        enum Way: String, CaseIterable, Sendable {
            case restored
            case copied = "copied by hand"
        }

        @Test(arguments: Way.allCases)
        func `what passed behind a backup is refused once that is put back, and devices go on`(
            way: Way
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var keys = try scenario.imported(2)
            let (config, backup) = (scenario.path("portcullis.yaml"), scenario.path("backup.db"))
            let gateway = try scenario.serve()
            let client = gateway.client()
            try expectEqual(client.send(raw: free(&keys[0])).status, 200)
            let made = try store(scenario, "backup", "--config", config, backup)
            expectEqual(made.status, 0, "\(made)")
            #expect(made.printed.hasPrefix("\(backup): keys 2, generation "))
            try expectEqual(store(scenario, "backup", "--config", config, backup).status, 1)
            try expectEqual(store(scenario, "check", backup).status, 0)
            try expectEqual(store(scenario, "check", "--config", config).status, 0)
            let locked = try store(scenario, "restore", "--config", config, backup)
            #expect(locked.complained.contains("is used by another gateway"), "\(locked)")
            // Admitted, and unknown to the backup.
            let late = [free(&keys[0]), keys[1].get("/v1/bare")]
            for request in late { try expectEqual(client.send(raw: request).status, 200) }
            try expectEqual(gateway.stop(), 0)

            let database = scenario.path("portcullis.db")
            try FileManager.default.removeItem(atPath: database)
            var options: [String] = []
            switch way {
            case .restored:
                let result = try store(scenario, "restore", "--config", config, backup)
                expectEqual(result.status, 0, "\(result)")
                expectEqual(result.printed, "\(database): restored from \(backup), keys 2\n")
                for part in ["could not be merged", "revoke them anew", "next challenge"] {
                    #expect(result.complained.contains(part), "\(part): \(result)")
                }
            case .copied:
                try FileManager.default.copyItem(atPath: backup, toPath: database)
                let refused = try scenario.portcullis("serve", config)
                #expect(refused.complained.contains("is an older copy"), "\(refused)")
                let check = try store(scenario, "check", "--config", config)
                expectEqual(check.status, 1)
                #expect(check.printed.contains("problem: \(database): is an older copy"))
                options = ["--accept-older-store"]
            }
            let next = try scenario.serve(arguments: options)
            let (again, seen) = (next.client(), origin.seen.count)
            // A challenge would tell it from a replay, so one is asked for.
            let replayed = try again.send(raw: late[0])
            expectEqual(replayed.status, 401)
            expectEqual(replayed.reason, "challenge-missing")
            // Where the rule takes no challenge, the app enrols again.
            try expectEqual(again.send(raw: late[1]).reason, "key-unknown")
            let bare = try again.send(raw: keys[1].get("/v1/bare"))
            expectEqual(bare.status, 401)
            expectEqual(bare.reason, "key-unknown")
            expectEqual(origin.seen.count, seen)
            // A device that goes on: refused once, then with the challenge, then as ever.
            let refused = try again.send(raw: free(&keys[0]))
            expectEqual(refused.reason, "challenge-missing")
            let challenge = try #require(refused.value("App-Attest-Challenge"))
            try expectEqual(again.send(raw: free(&keys[0], challenge)).status, 200)
            try expectEqual(again.send(raw: free(&keys[0])).status, 200)
            try expectEqual(again.send(raw: late[0]).reason, "counter-replayed")
            try expectEqual(next.stop(), 0)
        }

        @Test func `a restore over a store that can be read loses nothing`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var keys = try scenario.imported(2)
            let (config, backup) = (scenario.path("portcullis.yaml"), scenario.path("backup.db"))
            let gateway = try scenario.serve()
            let client = gateway.client()
            let made = try store(scenario, "backup", "--config", config, backup)
            expectEqual(made.status, 0, "\(made)")
            let late = keys[0].get("/v1/bare")
            try expectEqual(client.send(raw: late).status, 200)
            let id = keys[1].keyID.base64
            let revoked = try scenario.portcullis("keys", "revoke", "--config", config, id)
            expectEqual(revoked.status, 0)
            // With a log of transactions that was not merged.
            try gateway.crash()

            let result = try store(scenario, "restore", "--config", config, backup)
            expectEqual(result.status, 0, "\(result)")
            #expect(!result.complained.contains("could not be merged"))
            #expect(result.printed.contains("portcullis.db.before-"))
            #expect(result.printed.hasSuffix("all that it knew is merged: nothing was lost\n"))
            let next = try scenario.serve()
            try expectEqual(next.client().send(raw: late).reason, "counter-replayed")
            try expectEqual(next.client().send(raw: keys[0].get("/v1/bare")).status, 200)
            try expectEqual(next.client().send(raw: keys[1].get("/v1/bare")).reason, "key-revoked")
            let history = try scenario.portcullis("keys", "history", "--config", config)
            #expect(history.printed.contains("store-restored"))
            try expectEqual(next.stop(), 0)
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `migrate says whether it made tables, and refuses those of another version`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let database = try DatabaseServer()
            defer { database.end() }
            try scenario.configure(origin: "127.0.0.1:9", rules: "[]", database: database.address)
            let config = scenario.path("portcullis.yaml")
            let made = try store(scenario, "migrate", config)
            expectEqual(made.status, 0, "\(made)")
            expectEqual(made.printed, "made\n")
            try expectEqual(store(scenario, "migrate", config).printed, "up to date\n")
            _ = try database.query("UPDATE state SET version = 999")
            let refused = try store(scenario, "migrate", config)
            expectEqual(refused.status, 1, "\(refused)")
            expectEqual(refused.printed, "")
            let what = "the tables are of version 999, and this program uses version 1"
            #expect(refused.complained.contains(what), "\(refused)")
            #expect(refused.complained.contains("use the portcullis that made them"), "\(refused)")
        }
    }
}
