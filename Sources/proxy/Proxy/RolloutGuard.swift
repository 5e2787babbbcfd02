package import Rules
import Telemetry

/// Watches the installs that a rule refuses, and says when it has to fall back to `observe`.
///
/// A pure machine: `now` is passed in, in seconds of a clock that never goes back. The window is a
/// ring of slots. A slot that is older than the window no longer counts, so between eleven and
/// twelve twelfths of the window are counted.
package struct RolloutGuard: Sendable {
    static let slotCount = 12

    /// What the window holds.
    package struct Finding: Equatable, Sendable {
        /// Different installs to which the rule was enforced.
        package let installs: Int
        /// Those that are refused: something of them was refused that no other try heals, or, if
        /// these are more, nothing of them passed.
        package let refused: Int

        /// `70 of 1200 installs refused`
        package var text: String { "\(refused) of \(installs) installs refused" }
    }

    private struct Slot {
        /// The number of its time since the clock began.
        var number: Int64 = -1
        var counts = GuardCounts.Entry(rule: "")
    }

    package let rule: GuardRule
    private var slots = [Slot](repeating: Slot(), count: slotCount)

    package init(_ rule: GuardRule) { self.rule = rule }

    private func number(_ now: Int64) -> Int64 {
        let (ticks, overflow) = max(now, 0).multipliedReportingOverflow(by: Int64(Self.slotCount))
        return overflow ? .max : ticks / max(rule.window.components.seconds, 1)
    }

    /// Takes what a lane has counted.
    package mutating func add(_ counts: GuardCounts.Entry, now: Int64) {
        let number = number(now)
        let place = Int(number % Int64(Self.slotCount))
        if slots[place].number != number {
            slots[place] = Slot()
            slots[place].number = number
        }
        slots[place].counts.merge(counts)
    }

    /// What the window holds.
    package func finding(now: Int64) -> Finding {
        let number = number(now)
        var sum = GuardCounts.Entry(rule: "")
        for slot in slots where slot.number > number - Int64(Self.slotCount) {
            sum.merge(slot.counts)
        }
        var all = sum.passed
        all.merge(sum.refused)
        // Every install that passed is among all, so the error of this difference is much smaller
        // than that of its parts.
        let installs = all.count
        let stuck = max(installs - sum.passed.count, 0)
        return Finding(installs: installs, refused: min(max(stuck, sum.broken.count), installs))
    }

    /// What makes the rule fall; `nil` where nothing does.
    package func fall(now: Int64) -> Finding? {
        let finding = finding(now: now)
        guard finding.installs >= rule.minimum, finding.refused >= GuardRule.refusedMin else {
            return nil
        }
        // Both are below 2^54, and a share has 10^6 parts at most.
        let limit = Double(finding.installs) * Double(rule.refused.millionths) / 1e6
        return Double(finding.refused) > limit ? finding : nil
    }

    /// Forgets what was counted: the rule goes by something else from now on.
    package mutating func forget() { slots = [Slot](repeating: Slot(), count: Self.slotCount) }
}

extension GuardCounts.Entry {
    fileprivate mutating func merge(_ other: GuardCounts.Entry) {
        passed.merge(other.passed)
        refused.merge(other.refused)
        broken.merge(other.broken)
    }
}
