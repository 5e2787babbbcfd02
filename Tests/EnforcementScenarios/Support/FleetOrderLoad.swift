import Foundation
import LoopbackKit

/// An operator who gives one order after the other, at gateways chosen by chance, and watchers who
/// write down which version each gateway says that it serves.
///
/// `@unchecked Sendable`: what changes is touched under `condition`.
final class FleetOrderLoad: @unchecked Sendable {
    /// The longest time in which every gateway that reaches the database obeys an order.
    private static let obedience = Duration.seconds(2)
    /// Between two looks of a watcher, in seconds; a page of metrics is dear to make and to read.
    /// A gateway is known to be back when it says so twice in a second (``FleetReach``).
    private static let pause: TimeInterval =
        ProcessInfo.processInfo.environment["PORTCULLIS_FLEET_CYCLES"] == nil ? 0.04 : 0

    private let fleet: Fleet
    private let condition = NSCondition()
    private var isEnding = false
    private var running: Int
    private var newest: [Int]
    private var problems: [String] = []
    private var acknowledged = 0
    /// Orders that were acknowledged, and when, the latest last.
    private var given: [(version: Int, at: ContinuousClock.Instant)] = []
    private var kept = 0

    /// - rule: the rule that the orders are about.
    init(_ fleet: Fleet, rule: String) {
        self.fleet = fleet
        newest = Array(repeating: 0, count: fleet.count)
        running = fleet.count + 1
        var round = 0
        begin { [self] in
            give(rule, ["100%", "file"][round % 2])
            round += 1
        }
        // Each has a thread: one that is paused does not keep the others from being watched.
        for number in 0..<fleet.count { begin { [self] in watch(number) } }
    }

    private func begin(_ turn: @escaping () -> Void) {
        // The closure is handed to one thread.
        nonisolated(unsafe) let turn = turn
        Thread.detachNewThread { [self] in
            while condition.withLock({ !isEnding }) {
                turn()
                let next = Date(timeIntervalSinceNow: Self.pause)
                condition.withLock { while !isEnding, condition.wait(until: next) {} }
            }
            condition.withLock {
                running -= 1
                condition.broadcast()
            }
        }
    }

    /// What no gateway may say.
    var faults: [String] { condition.withLock { problems } }
    /// The newest version that a gateway has answered.
    var last: Int { condition.withLock { acknowledged } }
    /// How often a gateway was found to obey in time, after an order that another one had taken.
    var checks: Int { condition.withLock { kept } }

    /// Ends, and waits for that.
    func end() {
        let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
        condition.withLock {
            isEnding = true
            while running > 0, condition.wait(until: deadline) {}
        }
    }

    private func give(_ rule: String, _ to: String) {
        let number = Int.random(in: 0..<fleet.count)
        let before = condition.withLock { newest[number] }
        let answer = try? fleet.order(at: number, #""rule":"\#(rule)","to":"\#(to)""#)
        guard let version = answer?.object?["order"] as? Int else { return }
        condition.withLock {
            // It is answered when it is served.
            served(version, by: number, after: before)
            acknowledged = max(acknowledged, version)
            given.append((version, .now))
            given.removeFirst(max(given.count - 4096, 0))
        }
    }

    private func watch(_ number: Int) {
        let asked = ContinuousClock.now
        let before = condition.withLock { newest[number] }
        // A gateway that was killed says nothing.
        guard let admin = try? fleet.admin(number), let metrics = try? Metrics(admin),
            metrics["fleet_order_version"] >= 0
        else { return }
        let version = Int(metrics["fleet_order_version"])
        if (0...1).contains(metrics["fleet_silence_seconds"]) {
            fleet.reach.hears(number, asked: asked)
        }
        condition.withLock {
            served(version, by: number, after: before)
            let due = given.last { $0.at + Self.obedience < asked }
            guard let due, fleet.reach.isWhole(number, since: due.at) else { return }
            if version < due.version {
                let late = asked - due.at
                problems.append("gateway \(number): \(version), \(late) after \(due.version)")
            } else {
                kept += 1
            }
        }
    }

    /// - before: the newest version that the gateway had said before it was asked.
    private func served(_ version: Int, by number: Int, after before: Int) {
        if version < before { problems.append("gateway \(number): \(version) after \(before)") }
        newest[number] = max(version, newest[number])
    }
}
