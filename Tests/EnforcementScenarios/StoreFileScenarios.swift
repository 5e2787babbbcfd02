import AppAttest
import Expectations
import Foundation
import Glibc
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// What holds when the store's files are replaced, cut, or can't be read or made longer.
    @Suite struct StoreFiles {
        private static let rules = StockRule.list(.bare, .signed)

        /// What becomes of the database under a running gateway.
        enum Fate: String, CaseIterable, Sendable { case deleted, replaced }

        private func revoke(_ key: SoftwareKey, _ scenario: Scenario) throws -> Scenario.Result {
            let config = scenario.path("portcullis.yaml")
            return try scenario.portcullis("keys", "revoke", "--config", config, key.keyID.base64)
        }

        private func expectDegraded(_ gateway: GatewayProcess, _ admin: HTTPClient) throws {
            try gateway.waitUntil("a store that is told to fail", admin) {
                $0["store_degraded"] == 1
            }
            let ready = try admin.send("GET", "/readyz")
            expectEqual(ready.status, 200)
            expectEqual(ready.text, "ready\ndegraded: store-degraded\n")
        }

        @Test(arguments: Fate.allCases)
        func `a database that is replaced or deleted under a running gateway stops everything`(
            fate: Fate
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var key = try scenario.imported()[0]
            let database = scenario.path("portcullis.db")
            try FileManager.default.copyItem(atPath: database, toPath: scenario.path("backup.db"))
            let gateway = try scenario.serve()
            let (admin, client) = (try gateway.adminClient(), gateway.client())
            let challenge = try gateway.challenges("assertion", client)[0]
            let first = key.get("/v1/bare")
            try expectEqual(client.send(raw: first).status, 200)

            switch fate {
            case .deleted: try FileManager.default.removeItem(atPath: database)
            case .replaced: expectEqual(rename(scenario.path("backup.db"), database), 0)
            }
            let refused = try revoke(key, scenario)
            expectEqual(refused.status, 1, "\(refused)")
            #expect(refused.complained.contains(database))
            #expect(refused.complained.contains("process \(gateway.child.identifier)"))
            #expect(refused.complained.contains("restart the gateway"))
            let bare = try client.send(raw: key.get("/v1/bare"))
            expectEqual(bare.status, 503)
            expectEqual(bare.reason, "store-unavailable")
            let enrolled = try gateway.enrol(Scenario.device.makeKey(), client)
            expectEqual(enrolled.status, 503)
            try expectDegraded(gateway, admin)
            let signed = key.get("/v1/signed", challenge: challenge)
            try expectEqual(client.send(raw: signed).status, 503)
            try expectEqual(gateway.stop(), 1)
            try expectEqual(gateway.complaints(of: "\(database) was deleted or replaced; a key"), 1)

            // SQLite leaves the log, for somebody who has the database that it belongs to.
            if fate == .replaced {
                let config = scenario.path("portcullis.yaml")
                let mixed = try scenario.portcullis("serve", config)
                #expect(mixed.complained.contains("belongs to the database that was here before"))
                for suffix in ["-wal", "-shm"] {
                    try FileManager.default.removeItem(atPath: database + suffix)
                }
            }
            // What is there now is older than what was used.
            let older = try scenario.portcullis("serve", scenario.path("portcullis.yaml"))
            expectEqual(older.status, 1)
            #expect(!older.complained.contains("listening"))
            let mend = "where a gateway runs that has the files open, move those back"
            for part in [database, mend, "--accept-older-store", "replayed", "revoked"] {
                #expect(older.complained.contains(part), "\(part): \(older.complained)")
            }
            let accepted = try scenario.serve(arguments: ["--accept-older-store"])
            try expectEqual(accepted.complaints(of: "accepted"), 1)
            try expectEqual(accepted.stop(), 0)
            try expectEqual(scenario.serve().stop(), 0)
        }

        @Test func `the log that a kill has left is not mixed into another database`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var keys = try scenario.imported(2)
            let (database, backup) = (scenario.path("portcullis.db"), scenario.path("backup.db"))
            try FileManager.default.copyItem(atPath: database, toPath: backup)
            let gateway = try scenario.serve()
            try expectEqual(gateway.client().send(raw: keys[0].get("/v1/bare")).status, 200)
            try gateway.crash()
            expectEqual(rename(backup, database), 0)
            let config = scenario.path("portcullis.yaml")
            for words in [["serve", config], ["keys", "list", "--config", config]] {
                let program = try #require(Scenario.program)
                let refused = try scenario.run(program, words)
                expectEqual(refused.status, 1)
                #expect(refused.complained.contains("\(database)-wal"), "\(refused)")
            }
            for suffix in ["-wal", "-shm"] {
                try FileManager.default.removeItem(atPath: database + suffix)
            }
            let next = try scenario.serve(arguments: ["--accept-older-store"])
            let client = next.client()
            let challenge = try next.challenges("assertion", client)[0]
            let signed = keys[1].get("/v1/signed", challenge: challenge)
            try expectEqual(client.send(raw: signed).status, 200)
            try expectEqual(next.stop(), 0)
        }

        @Test func `to cut the files beside the database kills neither gateway nor command`() throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var keys = try scenario.imported(2)
            let gateway = try scenario.serve()
            let (admin, client) = (try gateway.adminClient(), gateway.client())
            try expectEqual(client.send(raw: keys[0].get("/v1/bare")).status, 200)
            let names = try FileManager.default.contentsOfDirectory(atPath: scenario.folder.path)
            for name in names.sorted() where name.hasPrefix("portcullis.db") {
                // These two hold the keys; without them there is nothing that could be saved.
                guard !["portcullis.db", "portcullis.db-wal"].contains(name) else { continue }
                // Nothing survives a cut while SQLite reads or writes there.
                try gateway.waitUntil("a commit", admin) { $0["commits_pending"] == 0 }
                truncate(scenario.path(name), 0)
                // Two looks at the store, one after the other.
                for _ in 0..<2 {
                    try gateway.waitUntil("an answer after a cut of \(name)", admin) { _ in
                        let answer = try client.send(raw: keys[0].get("/v1/bare"))
                        #expect([200, 503].contains(answer.status), "\(name)")
                        return answer.status == 200
                    }
                }
            }
            try expectEqual(revoke(keys[1], scenario).status, 0)
            try expectEqual(client.send(raw: keys[1].get("/v1/bare")).reason, "key-revoked")
            try expectEqual(gateway.stop(), 0)
            let next = try scenario.serve()
            try expectEqual(next.client().send(raw: keys[0].get("/v1/bare")).status, 200)
            try expectEqual(next.client().send(raw: keys[1].get("/v1/bare")).reason, "key-revoked")
        }

        @Test(.enabled(if: Scenario.faultyProgram != nil))
        func `while what a command has changed can't be read, that is told, and nothing passes`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var keys = try scenario.imported(2)
            let gateway = try scenario.serve(endingAt: "read", 1_000_000_000)
            let (admin, client) = (try gateway.adminClient(), gateway.client())
            try expectEqual(client.send(raw: keys[0].get("/v1/bare")).status, 200)
            gateway.child.signal(SIGWINCH)
            let revoked = try revoke(keys[1], scenario)
            expectEqual(revoked.status, 1, "\(revoked)")
            #expect(revoked.complained.contains("can't read it"))
            for number in keys.indices {
                let answer = try client.send(raw: keys[number].get("/v1/bare"))
                expectEqual(answer.status, 503)
                expectEqual(answer.reason, "store-unavailable")
            }
            try expectDegraded(gateway, admin)
            _ = try gateway.child.wait(for: "the fault") { _, complained in
                complained.contains("can't be read, ") ? true : nil
            }

            gateway.child.signal(SIGWINCH)
            try gateway.waitUntil("a store that is read again", admin) {
                $0["store_degraded"] == 0
            }
            _ = try gateway.child.wait(for: "the end of the fault") { _, complained in
                complained.contains("reads again") ? true : nil
            }
            try expectEqual(gateway.complaints(of: "can't be read"), 1)
            try expectEqual(admin.send("GET", "/readyz").status, 200)
            try expectEqual(client.send(raw: keys[0].get("/v1/bare")).status, 200)
            try expectEqual(client.send(raw: keys[1].get("/v1/bare")).reason, "key-revoked")
            try expectEqual(gateway.stop(), 0)
        }

        /// The first revocation of a store, on an ext4 without a free block.
        @Test func `a key that is revoked on a full disk is refused, and nobody dies`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            guard let disk = try FullDisk(scenario) else { return }
            try scenario.configure(
                origin: "127.0.0.1:\(origin.port)",
                rules: Self.rules,
                store: "disk/portcullis.db"
            )
            let gateway = try scenario.serve(within: disk.words)
            let client = gateway.client()
            var keys = (0..<8).map { _ in Scenario.device.makeKey() }
            for key in keys { try expectEqual(gateway.enrol(key, client).status, 201) }
            try disk.restartLog(gateway)
            try disk.fill(gateway)
            let program = try #require(Scenario.program)
            var obeyed = 0
            for number in keys.indices {
                let words = ["keys", "revoke", "--config", "portcullis.yaml"]
                let id = keys[number].keyID.base64
                let result = try disk.run(gateway, program, words + [id])
                #expect(result.status == 0 || result.status == 1, "\(result)")
                let answer = try client.send(raw: keys[number].get("/v1/bare"))
                guard result.status == 0 else { continue }
                obeyed += 1
                expectEqual(answer.reason, "key-revoked", "\(answer.status)")
            }
            #expect(obeyed > 0)
            try disk.empty(gateway)
            let key = Scenario.device.makeKey()
            let admin = try gateway.adminClient()
            try gateway.waitUntil("a disk with room", admin) { $0["store_degraded"] == 0 }
            try expectEqual(gateway.enrol(key, client).status, 201)
            try expectEqual(gateway.stop(), 0)
        }
    }
}

/// A small ext4 of the gateway's own, in a file of the scenario's folder.
private struct FullDisk {
    /// What starts a program that sees it.
    let words: [String]
    private let scenario: Scenario
    private let python: String

    /// `nil`, with a message, where no file system can be mounted.
    init?(_ scenario: Scenario) throws {
        self.scenario = scenario
        guard let program = Scenario.tool("mkfs.ext4"), let python = Scenario.tool("python3") else {
            return nil
        }
        self.python = python
        let (image, folder) = (scenario.path("disk.img"), scenario.path("disk"))
        try scenario.write("disk.img", "")
        expectEqual(truncate(image, 8 << 20), 0)
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: false
        )
        // No block is kept for root, who runs this.
        let made = try scenario.run(program, ["-q", "-m", "0", image])
        expectEqual(made.status, 0, "\(made)")
        guard let words = try scenario.onMount("-o loop \(image)", folder) else { return nil }
        self.words = words
    }

    /// The folder in the gateway's view of the file system.
    private func path(_ gateway: GatewayProcess, _ name: String) -> String {
        "/proc/\(gateway.child.identifier)/root\(scenario.path("disk"))/\(name)"
    }

    /// Makes the log of transactions begin anew, so that the next commits need no room in it.
    func restartLog(_ gateway: GatewayProcess) throws {
        let script = """
            import sqlite3
            database = sqlite3.connect("disk/portcullis.db")
            print(database.execute("PRAGMA wal_checkpoint(RESTART)").fetchone())
            """
        let result = try run(gateway, python, ["-c", script])
        #expect(result.printed.hasPrefix("(0, "), "\(result)")
    }

    func fill(_ gateway: GatewayProcess) throws {
        let file = open(path(gateway, "ballast"), O_WRONLY | O_CREAT, 0o600)
        guard file >= 0 else { throw LoopbackKit.Failure("ballast") }
        for count in [65_536, 4_096, 1_024, 1] {
            let block = [UInt8](repeating: 0, count: count)
            while write(file, block, count) > 0 {}
        }
        expectEqual(errno, ENOSPC)
        close(file)
    }

    func empty(_ gateway: GatewayProcess) throws {
        expectEqual(unlink(path(gateway, "ballast")), 0)
    }

    /// Runs a program that sees what the gateway sees.
    func run(
        _ gateway: GatewayProcess,
        _ program: String,
        _ words: [String]
    ) throws -> Scenario.Result {
        let mounts = "--mount=/proc/\(gateway.child.identifier)/ns/mnt"
        let place = "cd \(scenario.folder.path) && exec \"$0\" \"$@\""
        return try scenario.run(
            "/usr/bin/env",
            ["nsenter", mounts, "sh", "-c", place, program] + words
        )
    }
}
