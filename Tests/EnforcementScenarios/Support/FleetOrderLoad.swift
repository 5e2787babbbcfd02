import Foundation
import LoopbackKit

/// An operator who gives one order after the other, at gateways chosen by chance, and writes down
/// which version each gateway says that it serves.
///
/// `@unchecked Sendable`: what changes is touched under `condition`.
final class FleetOrderLoad: @unchecked Sendable {
    private let fleet: Fleet
    private let condition = NSCondition()
    private var isEnding = false
    private var isRunning = true
    private var newest: [Int]
    private var problems: [String] = []
    private var acknowledged = 0

    /// - rule: the rule that the orders are about.
    init(_ fleet: Fleet, rule: String) {
        self.fleet = fleet
        newest = Array(repeating: 0, count: fleet.count)
        Thread.detachNewThread { [self] in
            var round = 0
            while condition.withLock({ !isEnding }) {
                give(rule, ["100%", "file"][round % 2])
                watch()
                round += 1
            }
            condition.withLock {
                isRunning = false
                condition.broadcast()
            }
        }
    }

    /// What no gateway may say.
    var faults: [String] { condition.withLock { problems } }
    /// The newest version that a gateway has answered.
    var last: Int { condition.withLock { acknowledged } }

    /// Ends, and waits for that.
    func end() {
        let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
        condition.withLock {
            isEnding = true
            while isRunning, condition.wait(until: deadline) {}
        }
    }

    private func give(_ rule: String, _ to: String) {
        let number = Int.random(in: 0..<fleet.count)
        let answer = try? fleet.order(at: number, #""rule":"\#(rule)","to":"\#(to)""#)
        guard let version = answer?.object?["order"] as? Int else { return }
        // It is answered when it is served.
        served(version, by: number)
        condition.withLock { acknowledged = max(acknowledged, version) }
    }

    private func watch() {
        for number in 0..<fleet.count {
            // A gateway that was killed says nothing.
            guard let admin = try? fleet.admin(number),
                let version = try? Metrics(admin)["fleet_order_version"], version >= 0
            else { continue }
            served(Int(version), by: number)
        }
    }

    private func served(_ version: Int, by number: Int) {
        condition.withLock {
            if version < newest[number] {
                problems.append("gateway \(number): \(version) after \(newest[number])")
            }
            newest[number] = max(version, newest[number])
        }
    }
}
