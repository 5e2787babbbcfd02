import AppAttest
import Expectations
import Foundation
import GRDB
import LoopbackKit
import Synchronization
import Testing

extension Scenarios {
    /// What many kills leave behind.
    @Suite struct Kills {
        /// 10 in an ordinary run, each place once; `PORTCULLIS_KILL_CYCLES=50` for a long one.
        private static let cycles =
            ProcessInfo.processInfo.environment["PORTCULLIS_KILL_CYCLES"].flatMap { Int($0) } ?? 10
        private static let rules = StockRule.list(.signed, .bare)

        /// When a gateway is killed.
        private enum Moment: CustomStringConvertible {
            /// By the test, once so many requests were admitted; whatever it does then.
            case admitted(Int)
            /// By its store, when it is at a place for this time.
            case place(String, Int)

            /// Every second one in the store, place by place.
            static func random(_ cycle: Int) -> Moment {
                let places = [
                    ("before-commit", 12), ("log-write", 60), ("after-commit", 12),
                    ("database-write", 10), ("before-settling", 12),
                ]
                guard cycle.isMultiple(of: 2) else { return .admitted(.random(in: 1...40)) }
                let (place, most) = places[cycle / 2 % places.count]
                return .place(place, .random(in: 1...most))
            }

            var description: String {
                switch self {
                case .admitted(let count): "killed after \(count) admissions"
                case .place(let place, let count): "ended at \(place), time \(count)"
                }
            }
        }

        /// What is known to have happened, over all cycles.
        private struct Past {
            var admitted: [Load.Sent] = []
            var unanswered: [Load.Sent] = []
            var counters: [String: Int] = [:]
            /// Of those that were admitted, how many have been sent again.
            var replayed = 0
        }

        private func start(_ scenario: Scenario, _ moment: Moment) throws -> GatewayProcess {
            switch moment {
            case .admitted: try scenario.serve()
            case .place(let place, let count): try scenario.serve(endingAt: place, count)
            }
        }

        /// Loads a gateway until it is killed.
        private func load(
            _ load: Load,
            _ gateway: GatewayProcess,
            _ moment: Moment
        ) throws -> Load.Outcome {
            switch moment {
            case .admitted(let count):
                return try load.run(against: gateway, until: count) { try gateway.crash() }
            case .place(let place, _):
                gateway.child.signal(SIGWINCH)
                let outcome = try load.run(against: gateway, until: nil) {
                    let status = try gateway.child.waitForEnd()
                    expectEqual(status, -SIGKILL)
                }
                #expect(gateway.child.complained.contains("ended at \(place)"))
                return outcome
            }
        }

        /// Sends again what was sent since the last time, which has the newest of each key: where
        /// its counter is spent, all before are. At the end all that was ever sent. What was
        /// admitted is refused; what was never answered may be admitted once, unless the origin has
        /// it already.
        private func replay(
            _ past: inout Past,
            _ gateway: GatewayProcess,
            seen: [String],
            all: Bool = false
        ) throws {
            let loops = 4
            let admitted = past.admitted.dropFirst(all ? 0 : past.replayed)
            past.replayed = past.admitted.count
            let faults = Faults()
            DispatchQueue.concurrentPerform(iterations: loops) { loop in
                let client = gateway.client()
                let first = admitted.startIndex + loop
                for index in stride(from: first, to: admitted.endIndex, by: loops) {
                    faults.note {
                        let sent = admitted[index]
                        let answer = try client.send(raw: sent.raw)
                        let reasons =
                            sent.hasChallenge
                            ? ["challenge-unknown", "counter-replayed"] : ["counter-replayed"]
                        guard answer.status == 401, reasons.contains(answer.reason) else {
                            return "\(sent.target) again: \(answer.status) \(answer.reason)"
                        }
                        return nil
                    }
                }
            }
            let seen = Set(seen)
            let client = gateway.client()
            for sent in past.unanswered {
                let answer = try client.send(raw: sent.raw)
                #expect(answer.status == 401 || answer.status == 200 && !seen.contains(sent.target))
            }
            past.admitted += past.unanswered
            past.unanswered = []
            expectEqual(faults.texts, [])
        }

        /// What the database holds while nobody runs on it.
        private func examine(_ scenario: Scenario, _ load: Load, _ past: inout Past) throws {
            let database = try DatabaseQueue(path: scenario.path("portcullis.db"))
            let check = try database.read { try String.fetchAll($0, sql: "PRAGMA integrity_check") }
            expectEqual(check, ["ok"])
            try database.close()
            let export = try scenario.portcullis(
                "keys",
                "export",
                "--config",
                scenario.path("portcullis.yaml")
            )
            expectEqual(export.status, 0, "\(export.complained)")
            var counters: [String: Int] = [:]
            for line in export.printed.split(separator: "\n") {
                let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                let keyID = try #require(row?["key_id"] as? String)
                counters[keyID] = try #require(row?["counter"] as? Int)
            }
            for (keyID, counter) in past.counters {
                #expect(counters[keyID] ?? -1 >= counter, "a counter went down, or its key went")
            }
            for keyID in load.enrolled {
                #expect(counters[keyID.base64] != nil, "a key that was answered 201 is lost")
            }
            // Whoever had waited for the disk has a counter there.
            for sent in past.admitted where !sent.hasChallenge {
                #expect(counters[sent.keyID.base64] ?? -1 >= Int(sent.counter))
            }
            past.counters = counters
        }

        @Test(.enabled(if: Scenario.faultyProgram != nil))
        func `many kills under load: nothing twice, nothing lost, nothing backwards`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let more = """
                enrolment: { rate: 10000/s, burst: 100000 }
                limits: { address_failures: off }
                """
            try scenario.configure(origin, rules: Self.rules, more: more)
            let load = Load(try scenario.imported(6))
            var past = Past()
            for cycle in 1...Self.cycles {
                let moment = Moment.random(cycle)
                do {
                    let gateway = try start(scenario, moment)
                    try replay(&past, gateway, seen: origin.seen.map(\.target))
                    let outcome = try self.load(load, gateway, moment)
                    past.admitted += outcome.admitted
                    try examine(scenario, load, &past)
                    past.unanswered = outcome.unanswered
                } catch {
                    Issue.record("cycle \(cycle), \(moment): \(error)")
                    return
                }
            }
            let last = try scenario.serve()
            try replay(&past, last, seen: origin.seen.map(\.target), all: true)
            try expectEqual(last.stop(), 0)
            #expect(!load.enrolled.isEmpty)
            let targets = origin.seen.map(\.target)
            expectEqual(Set(targets).count, targets.count)
            #expect(targets.count >= Self.cycles)
        }
    }
}

/// What went wrong on several threads.
private final class Faults: Sendable {
    private let list = Mutex<[String]>([])

    var texts: [String] { list.withLock { $0 } }

    /// Runs a check, which answers what is wrong.
    func note(_ check: () throws -> String?) {
        let text: String?
        do { text = try check() } catch { text = "\(error)" }
        if let text { list.withLock { $0.append(text) } }
    }
}
