import Expectations
import Foundation
import GRDB
import Glibc
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// What a client gets, the log says and the metrics count when the disk fails.
    @Suite struct StoreFaults {
        /// What is wrong with the disk, and how the log names it.
        enum Fault: String, CaseIterable, Sendable {
            /// There is no room left.
            case full
            /// Writes fail: here for the limit of a file's size.
            case failing = "unusable"
            /// Another program holds the write lock.
            case locked = "busy"
        }

        private static let rules = StockRule.list(.bare, .lenient, .signed)

        /// Makes the fault; the result ends it.
        private static func make(
            _ fault: Fault,
            _ gateway: GatewayProcess,
            _ scenario: Scenario,
            _ database: String
        ) throws -> () throws -> Void {
            switch fault {
            case .full:
                // The folder of the gateway's own view of the file system.
                let path = "/proc/\(gateway.child.identifier)/root\(database)-ballast"
                let file = open(path, O_WRONLY | O_CREAT, 0o600)
                guard file >= 0 else { throw LoopbackKit.Failure("ballast") }
                let block = [UInt8](repeating: 0, count: 4_096)
                while write(file, block, block.count) > 0 {}
                close(file)
                return { unlink(path) }
            case .failing:
                func limit(_ bytes: String) throws {
                    let words = ["prlimit", "--pid", "\(gateway.child.identifier)"]
                    let limit = ["--fsize=\(bytes):unlimited"]
                    try expectEqual(scenario.run("/usr/bin/env", words + limit).status, 0)
                }
                try limit("1")
                return { try limit("unlimited") }
            case .locked:
                var configuration = GRDB.Configuration()
                configuration.allowsUnsafeTransactions = true
                let queue = try DatabaseQueue(path: database, configuration: configuration)
                try queue.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
                return {
                    try queue.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
                    try queue.close()
                }
            }
        }

        /// Configures a database in a folder of its own.
        ///
        /// - Returns: that folder.
        private static func configure(
            _ scenario: Scenario,
            _ origin: RecordingOrigin
        ) throws -> String {
            let folder = scenario.path("disk")
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: false
            )
            try scenario.configure(
                origin: "127.0.0.1:\(origin.port)",
                rules: rules,
                store: "disk/portcullis.db"
            )
            return folder
        }

        /// A gateway whose database lies in a folder of its own; `nil` where no mount is allowed.
        private func start(
            _ scenario: Scenario,
            _ origin: RecordingOrigin,
            _ fault: Fault
        ) throws -> GatewayProcess? {
            var outer: [String] = []
            let folder = try Self.configure(scenario, origin)
            if fault == .full {
                guard let mounted = try scenario.onMount("-t tmpfs -o size=1m tmpfs", folder) else {
                    return nil
                }
                outer = mounted
            }
            return try scenario.serve(within: outer)
        }

        /// What operators see while it lasts.
        private func expectTold(
            _ fault: Fault,
            _ gateway: GatewayProcess,
            _ admin: HTTPClient
        ) throws {
            let metrics = try Metrics(admin)
            expectEqual(metrics["store_degraded"], 1)
            #expect(metrics["commit_failures_total"] > 0)
            #expect(metrics["commits_pending"] > 0)
            let ready = try admin.send("GET", "/readyz")
            // A rule forwards on errors, so there is something to serve.
            expectEqual(ready.status, 200)
            expectEqual(ready.text, "ready\ndegraded: store-unwritable\n")
            // Once, however often it is tried.
            try expectEqual(gateway.complaints(of: "can't be written, \(fault.rawValue): "), 1)
            try expectEqual(gateway.complaints(of: "/readyz says store-unwritable"), 1)
        }

        @Test(arguments: Fault.allCases)
        func `a disk that fails is told of, refused by rule, and made up for`(
            fault: Fault
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            guard let gateway = try start(scenario, origin, fault) else { return }
            let (admin, client) = (try gateway.adminClient(), gateway.client())
            var keys = (0..<2).map { _ in Scenario.device.makeKey() }
            for key in keys { try expectEqual(gateway.enrol(key, client).status, 201) }
            let challenge = try gateway.challenges("assertion", client)[0]
            let first = keys[0].get("/v1/bare")
            try expectEqual(client.send(raw: first).status, 200)

            let end = try Self.make(fault, gateway, scenario, scenario.path("disk/portcullis.db"))
            // A required challenge that is signed stops replays by itself; nobody waits.
            let signed = keys[0].get("/v1/signed", challenge: challenge)
            try expectEqual(client.send(raw: signed).status, 200)
            let bare = keys[0].get("/v1/bare")
            let refused = try client.send(raw: bare)
            expectEqual(refused.status, 503)
            expectEqual(refused.reason, "store-unavailable")
            #expect(refused.value("Retry-After") != nil)
            let lenient = keys[1].get("/v1/lenient")
            try expectEqual(client.send(raw: lenient).status, 200)
            try expectEqual(origin.seen(3).last?.head.all("App-Attest-Verdict"), ["error"])
            let line = try gateway.line(about: "/v1/bare", after: 1)
            #expect(line["verdict"] as? String == "error")
            #expect(line["reason"] as? String == "store-unavailable")
            if fault != .locked {
                let enrolled = try gateway.enrol(Scenario.device.makeKey(), client)
                expectEqual(enrolled.status, 503)
                expectEqual(enrolled.reason, "store-unavailable")
            }
            try expectTold(fault, gateway, admin)

            try end()
            try gateway.waitUntil("a store that is written again", admin) {
                $0["store_degraded"] == 0 && $0["commits_pending"] == 0
            }
            try expectEqual(gateway.complaints(of: "can be written again"), 1)
            try expectEqual(admin.send("GET", "/readyz").status, 200)
            try expectEqual(client.send(raw: keys[0].get("/v1/bare")).status, 200)
            for raw in [first, bare, lenient] {
                try expectEqual(client.send(raw: raw).reason, "counter-replayed")
            }
            try expectEqual(gateway.stop(), 0)
            // The disk of the first one is gone with it.
            guard fault != .full else { return }
            let next = try scenario.serve()
            for raw in [first, bare, lenient] {
                try expectEqual(next.client().send(raw: raw).reason, "counter-replayed")
            }
        }

        @Test(arguments: [true, false])
        func `a disk that can't be written is refused at the start with a way out`(
            hasDatabase: Bool
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let folder = try Self.configure(scenario, origin)
            if hasDatabase { try expectEqual(scenario.serve().stop(), 0) }
            guard let outer = try scenario.onMount("-o bind,ro \(folder)", folder),
                let program = Scenario.program
            else { return }
            let words = outer + [program, "serve", scenario.path("portcullis.yaml")]
            let result = try scenario.run(words[0], Array(words.dropFirst()))
            expectEqual(result.status, 1)
            #expect(result.complained.contains(hasDatabase ? "\(folder)/portcullis.db" : folder))
            #expect(result.complained.contains("ead-only file system"), "\(result)")
            #expect(result.complained.contains("in a folder that the gateway may write"))
            #expect(!result.complained.contains("listening"))
        }

        @Test(arguments: [true, false])
        func `a start on a full disk waits for room, and serves once there is some`(
            hasDatabase: Bool
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let folder = try Self.configure(scenario, origin)
            guard let outer = try scenario.onMount("-t tmpfs -o size=1m tmpfs", folder),
                let program = Scenario.program
            else { return }
            let config = scenario.path("portcullis.yaml")
            var key = Scenario.device.makeKey()
            try scenario.write("keys.jsonl", key.importLine(as: .test) + "\n")
            // In the mount, which ends with its last process.
            let makes = hasDatabase ? "\"$0\" keys import --config \"$1\" keys.jsonl >&2; " : ""
            let fills = "cat /dev/zero > disk/ballast 2> ballast.log; exec \"$0\" serve \"$1\""
            let words = outer + ["sh", "-c", makes + fills, program, config]
            let child = try scenario.start(words[0], Array(words.dropFirst()))
            try child.wait(for: "a start that waits") { _, complained in
                complained.contains("the start waits up to 30 s for room; next: make room")
                    ? () : nil
            }
            unlink("/proc/\(child.identifier)/root\(folder)/ballast")
            let gateway = try GatewayProcess(child)
            let client = gateway.client()
            if !hasDatabase {
                key = Scenario.device.makeKey()
                try expectEqual(gateway.enrol(key, client).status, 201)
            }
            try expectEqual(client.send(raw: key.get("/v1/bare")).status, 200)
            try expectEqual(gateway.complaints(of: "for room"), 1)
        }

        @Test func `a damaged database is refused at the start, and the way out works`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            let config = scenario.path("portcullis.yaml")
            var keys = try scenario.imported(400)
            let export = try scenario.portcullis("keys", "export", "--config", config)
            expectEqual(export.status, 0)
            let database = scenario.path("portcullis.db")
            let file = try FileHandle(forUpdating: URL(filePath: database))
            // A page in the middle: of the keys or of their index.
            try file.seek(toOffset: 20 * 4_096)
            try file.write(contentsOf: [UInt8](repeating: 0xA5, count: 4_096))
            try file.close()

            let refused = try scenario.portcullis("serve", config)
            expectEqual(refused.status, 1)
            #expect(!refused.complained.contains("listening"))
            for part in [
                database, "is damaged", "keys import", "-wal", "--accept-older-store",
            ] {
                #expect(refused.complained.contains(part), "\(part): \(refused.complained)")
            }
            for suffix in ["", "-wal", "-shm"] {
                try? FileManager.default.moveItem(
                    atPath: database + suffix,
                    toPath: database + suffix + ".aside"
                )
            }
            try scenario.write("export.jsonl", export.printed)
            let imported = try scenario.portcullis(
                "keys",
                "import",
                "--config",
                config,
                scenario.path("export.jsonl")
            )
            expectEqual(imported.status, 0, "\(imported)")
            let older = try scenario.portcullis("serve", config)
            expectEqual(older.status, 1)
            #expect(older.complained.contains("is another store"), "\(older)")
            let gateway = try scenario.serve(arguments: ["--accept-older-store"])
            let client = gateway.client()
            let challenge = try gateway.challenges("assertion", client)[0]
            let answer = try client.send(raw: keys[0].get("/v1/signed", challenge: challenge))
            expectEqual(answer.status, 200)
        }
    }
}

extension Scenario {
    /// The words that start a program in a view of the file system of its own, in which something
    /// is mounted on a folder; `nil`, with a message, where that is not allowed.
    func onMount(_ what: String, _ folder: String) throws -> [String]? {
        let words = [
            "/usr/bin/env", "unshare", "--mount", "sh", "-c",
            #"mount \#(what) "$0" && exec "$@""#, folder,
        ]
        let trial = try run(words[0], Array(words.dropFirst()) + ["true"])
        if trial.status == 0 { return words }
        print("no mount (\(trial.complained)): it takes root; a scenario is skipped")
        return nil
    }
}
