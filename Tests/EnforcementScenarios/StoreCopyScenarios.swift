import AppAttest
import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// `store copy`: a store moves to a database that gateways share, or back, while it is used.
    @Suite(.enabled(if: DatabaseServer.programs != nil)) struct StoreCopies {
        private static let rules = StockRule.list(.bare, .window)
        private static let (file, fleet) = ("portcullis.yaml", "fleet.yaml")

        /// From which store to which.
        enum Way: CaseIterable, Sendable {
            case toFleet, toFile

            var names: (from: String, to: String) {
                switch self {
                case .toFleet: (file, fleet)
                case .toFile: (fleet, file)
                }
            }
        }

        /// Two configurations for one app and origin, each with a store of its own.
        private struct Stores {
            let scenario: Scenario
            let database: DatabaseServer
            let origin: RecordingOrigin

            init() throws {
                scenario = try Scenario()
                database = try DatabaseServer()
                origin = try scenario.origin()
                let place = "127.0.0.1:\(origin.port)"
                let more = "limits: { address_failures: off }"
                try scenario.configure(origin: place, rules: rules, more: more)
                try scenario.configure(
                    fleet,
                    origin: place,
                    rules: rules,
                    more: more,
                    // Commands wait for gateways as long. The text goes between quotation marks.
                    database: database.address + "\", revoked_within: \"2s"
                )
                try run("store", "migrate", scenario.path(fleet))
            }

            @discardableResult
            func run(_ words: String...) throws -> String {
                let result = try scenario.portcullis(words)
                guard result.status == 0 else {
                    throw ChildProcess.Failure(description: "\(words): \(result.complained)")
                }
                return result.printed
            }

            func keys(_ command: String, of config: String, _ words: String...) throws -> String {
                let result = try scenario.portcullis(
                    ["keys", command, "--config", scenario.path(config)] + words
                )
                guard result.status == 0 else {
                    throw ChildProcess.Failure(description: "\(command): \(result.complained)")
                }
                return result.printed
            }

            func imported(_ count: Int, into config: String) throws -> [SoftwareKey] {
                let keys = (0..<count).map { _ in Scenario.device.makeKey() }
                let lines = keys.map { $0.importLine(as: .test) + "\n" }.joined()
                try scenario.write("keys.jsonl", lines)
                _ = try self.keys("import", of: config, scenario.path("keys.jsonl"))
                return keys
            }

            func words(_ way: Way) -> [String] {
                let (from, to) = way.names
                return [
                    "store", "copy", "--from", scenario.path(from), "--to", scenario.path(to),
                ]
            }

            /// What the command says it did.
            func copy(_ way: Way, _ more: String...) throws -> String {
                let result = try scenario.portcullis(words(way) + more)
                guard result.status == 0 else {
                    throw ChildProcess.Failure(description: "copy: \(result.complained)")
                }
                return result.printed
            }

            func end() {
                scenario.end()
                database.end()
            }
        }

        /// Clients that sign until they are told to stop; what was admitted.
        ///
        /// `@unchecked Sendable`: what changes is read and written under `condition`.
        private final class Clients: @unchecked Sendable {
            private let condition = NSCondition()
            private var admitted: [[UInt8]] = []
            private var faults: [String] = []
            private var isOver = false
            private let group = DispatchGroup()

            init(_ keys: [SoftwareKey], at gateway: GatewayProcess) {
                for (number, key) in keys.enumerated() {
                    let path = number.isMultiple(of: 2) ? "/v1/bare" : "/v1/window"
                    let (port, side) = (gateway.clientPort, ClientSide.current)
                    DispatchQueue(label: "client \(number)").async(group: group) { [self] in
                        var key = key
                        let client = HTTPClient(port: port, side)
                        while !condition.withLock({ isOver }) {
                            let raw = key.get(path)
                            let answer = Result { try client.send(raw: raw) }
                            guard note(raw, answer) else { return }
                            pause()
                        }
                    }
                }
            }

            private func note(_ raw: [UInt8], _ answer: Result<Answer, any Error>) -> Bool {
                condition.withLock {
                    defer { condition.broadcast() }
                    switch answer {
                    case .success(let answer) where answer.status == 200: admitted.append(raw)
                    case .success(let answer): faults.append("\(answer.status) \(answer.reason)")
                    case .failure(let error): faults.append("\(error)")
                    }
                    return faults.isEmpty
                }
            }

            /// Leaves processors to the commands: a copy that is made beside two hundred requests a
            /// second meets as many of each kind as one beside thousands.
            private func pause() {
                let next = Date(timeIntervalSinceNow: 0.02)
                condition.withLock { while !isOver, condition.wait(until: next) {} }
            }

            /// Waits until so many more were admitted.
            func await(_ more: Int) {
                let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
                condition.withLock {
                    let goal = admitted.count + more
                    while admitted.count < goal, faults.isEmpty {
                        guard condition.wait(until: deadline) else { return }
                    }
                }
            }

            func end() -> (admitted: [[UInt8]], faults: [String]) {
                condition.withLock { isOver = true }
                group.wait()
                return condition.withLock { (admitted, faults) }
            }
        }

        @Test(arguments: Way.allCases)
        func `nothing that was admitted before a move is good behind it`(way: Way) throws {
            let stores = try Stores()
            defer { stores.end() }
            let (from, to) = way.names
            let keys = try stores.imported(7, into: from)
            let old = try stores.scenario.serve(from)
            // Three keys that nobody uses: one is revoked, one deleted, one left.
            let clients = Clients(Array(keys[0..<4]), at: old)
            clients.await(40)
            let rehearsed = try stores.copy(way, "--dry-run")
            #expect(rehearsed.hasPrefix("would copy: new 7, brought up to date 0, as they were 0"))
            if way == .toFleet { #expect(try stores.keys("list", of: to).isEmpty) }
            _ = try stores.keys("revoke", of: from, keys[4].keyID.base64)
            let first = try stores.copy(way)
            #expect(first.hasPrefix("copied: new 7, brought up to date 0"), "\(first)")
            _ = try stores.keys("delete", of: from, keys[5].keyID.base64)
            clients.await(40)
            let (admitted, faults) = clients.end()
            expectEqual(faults, [])
            try expectEqual(old.stop(), 0)
            let second = try stores.copy(way)
            #expect(second.contains("new 0, brought up to date 4, as they were 2, deleted 1, "))
            let third = try stores.copy(way)
            #expect(third.contains("new 0, brought up to date 0, as they were 7, deleted 0, "))

            let new = try stores.scenario.serve(to)
            let client = new.client()
            let before = stores.origin.seen.count
            for raw in admitted {
                try expectEqual(client.send(raw: raw).reason, "counter-replayed")
            }
            var (revoked, deleted, unused) = (keys[4], keys[5], keys[6])
            try expectEqual(client.send(raw: revoked.get("/v1/bare")).reason, "key-revoked")
            try expectEqual(client.send(raw: deleted.get("/v1/bare")).reason, "key-unknown")
            expectEqual(stores.origin.seen.count, before)
            try expectEqual(client.send(raw: unused.get("/v1/bare")).status, 200)
            // Back again: a deletion stays, and the counter of what was used there rises here.
            let back = try stores.copy(way == .toFleet ? .toFile : .toFleet)
            #expect(back.contains("new 0, brought up to date 1, as they were 6, deleted 0, "))
        }

        @Test(arguments: Way.allCases)
        func `a copy that was killed is begun again and loses nothing`(way: Way) throws {
            let stores = try Stores()
            defer { stores.end() }
            let (from, to) = way.names
            let keys = try stores.imported(6_000, into: from)
            // The target has a store.
            _ = try stores.imported(1, into: to)
            let program = try #require(Scenario.program)
            let copy = try stores.scenario.start(program, stores.words(way))
            try eventually { try stores.keys("list", of: to).split(separator: "\n").count >= 2 }
            copy.signal(SIGKILL)
            _ = try copy.waitForEnd()
            _ = try stores.copy(way)
            let again = try stores.copy(way)
            #expect(again.contains("new 0, brought up to date 0, as they were 6000, deleted 0, "))
            let stored = Set(try stores.keys("export", of: to).split(separator: "\n"))
            let source = Set(try stores.keys("export", of: from).split(separator: "\n"))
            expectEqual(source.count, keys.count)
            #expect(source.isSubset(of: stored))
        }

        @Test func `what a copy can't do is said before or listed`() throws {
            let stores = try Stores()
            defer { stores.end() }
            let key = try stores.imported(1, into: Self.file)[0]
            let name = stores.scenario.path(Self.file)
            let same = try stores.scenario.portcullis(
                ["store", "copy", "--from", name, "--to", name]
            )
            #expect(same.complained.contains("name the same store"))
            #expect(try stores.copy(.toFleet).contains("new 1, "))
            // Deleted there: nothing makes it good again.
            _ = try stores.keys("delete", of: Self.fleet, key.keyID.base64)
            let refused = try stores.scenario.portcullis(stores.words(.toFleet))
            expectEqual(refused.status, 1)
            #expect(refused.complained.contains("the key was deleted, and stays so"))
            #expect(refused.printed.contains("not copied 1"))
        }
    }
}
