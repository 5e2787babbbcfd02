import AppAttest
import Cryptography
package import Rules
import Services
package import Telemetry
package import Verification

/// Watches the installs that a rule refuses, and says when the rule has to fall back to `observe`.
///
/// A pure machine: `now` is passed in, in seconds of a clock that goes back only where a fleet has
/// changed to a database whose clock is behind. The window is a ring of slots. A slot that is older
/// than the window no longer counts, so between eleven and twelve twelfths of the window are
/// counted. Nor does one that lies ahead, by the clock of before.
package struct RolloutGuard: Sendable {
    static let slotCount = 12

    /// The counts in the window.
    package struct Finding: Equatable, Sendable {
        /// Different installs to which the rule was enforced.
        package let installs: Int
        /// The refused ones. An install counts as refused after a refusal that no retry heals. If
        /// the installs of which no request passed are more, that number counts.
        package let refused: Int

        /// `70 of 1200 installs refused`
        package var text: String { "\(refused) of \(installs) installs refused" }
    }

    private struct Slot {
        /// The number of its time slot since the clock began.
        var number: Int64 = -1
        var counts = GuardCounts.Entry(rule: "")
        /// The other gateways don't have it as it is.
        var isUnsent = false
    }

    package let rule: GuardRule
    private var slots = [Slot](repeating: Slot(), count: slotCount)
    /// What the other gateways of a fleet have counted, all together.
    private var others = [Slot](repeating: Slot(), count: slotCount)

    package init(_ rule: GuardRule) { self.rule = rule }

    private func number(_ now: Int64) -> Int64 {
        let (ticks, overflow) = max(now, 0).multipliedReportingOverflow(by: Int64(Self.slotCount))
        return overflow ? .max : ticks / max(rule.window.components.seconds, 1)
    }

    /// Adds the counts of an event loop.
    package mutating func add(_ counts: GuardCounts.Entry, now: Int64) {
        let number = number(now)
        let place = Int(number % Int64(Self.slotCount))
        if slots[place].number != number {
            slots[place] = Slot()
            slots[place].number = number
        }
        slots[place].counts.merge(counts)
        slots[place].isUnsent = true
    }

    /// Whether a slot lies ahead: further than the clocks of two gateways differ.
    private func isAhead(_ slot: Int64, _ now: Int64) -> Bool { slot - 1 > number(now) }

    /// Adds the counts of another gateway, whose clock is the same. Adding the same again changes
    /// nothing.
    package mutating func add(_ counts: GuardCounts.Entry, ofSlot number: Int64, now: Int64) {
        guard number >= 0, !isAhead(number, now) else { return }
        let place = Int(number % Int64(Self.slotCount))
        if others[place].number < number || isAhead(others[place].number, now) {
            others[place] = Slot()
            others[place].number = number
        }
        if others[place].number == number { others[place].counts.merge(counts) }
    }

    /// Hands over what the other gateways don't have yet.
    package mutating func takeUnsent() -> [(slot: Int64, counts: GuardCounts.Entry)] {
        var unsent: [(slot: Int64, counts: GuardCounts.Entry)] = []
        for place in slots.indices where slots[place].isUnsent {
            unsent.append((slots[place].number, slots[place].counts))
            slots[place].isUnsent = false
        }
        return unsent
    }

    /// The other gateways did not get a slot.
    package mutating func sendAgain(slot number: Int64) {
        for place in slots.indices where slots[place].number == number {
            slots[place].isUnsent = true
        }
    }

    /// The counts in the window.
    package func finding(now: Int64) -> Finding {
        let number = number(now)
        var sum = GuardCounts.Entry(rule: "")
        for slot in slots + others where slot.number > number - Int64(Self.slotCount) {
            if !isAhead(slot.number, now) { sum.merge(slot.counts) }
        }
        var all = sum.passed
        all.merge(sum.refused)
        // All installs include those that passed, so the error of this difference is much smaller
        // than that of its parts.
        let installs = all.count
        let stuck = max(installs - sum.passed.count, 0)
        return Finding(installs: installs, refused: min(max(stuck, sum.broken.count), installs))
    }

    /// The counts that make the rule fall; `nil` where it does not.
    package func fall(now: Int64) -> Finding? {
        let finding = finding(now: now)
        guard finding.installs >= rule.minimum, finding.refused >= GuardRule.refusedMin else {
            return nil
        }
        // Both are below 2^54, and a share has 10^6 parts at most.
        let limit = Double(finding.installs) * Double(rule.refused.millionths) / 1e6
        return Double(finding.refused) > limit ? finding : nil
    }

    /// Forgets the counts, after the rule has changed.
    package mutating func forget() {
        slots = [Slot](repeating: Slot(), count: Self.slotCount)
        others = slots
    }
}

extension GuardCounts.Entry {
    fileprivate mutating func merge(_ other: GuardCounts.Entry) {
        passed.merge(other.passed)
        refused.merge(other.refused)
        broken.merge(other.broken)
    }
}

/// The installs that one event loop has counted at rules with a guard since the last query.
package struct GuardCounts: Sendable {
    /// The installs of one rule.
    package struct Entry: Sendable {
        /// The rule's id.
        package let rule: String
        package internal(set) var passed = InstallSketch.empty
        /// Installs of which a request was refused for a reason in the app.
        package internal(set) var refused = InstallSketch.empty
        /// Installs of which a request was refused for a reason that no retry heals.
        package internal(set) var broken = InstallSketch.empty

        package init(rule: String) { self.rule = rule }

        package init(
            rule: String,
            passed: InstallSketch,
            refused: InstallSketch,
            broken: InstallSketch
        ) {
            (self.rule, self.passed) = (rule, passed)
            (self.refused, self.broken) = (refused, broken)
        }

        var isEmpty: Bool { passed.isEmpty && refused.isEmpty }
    }

    private var entries: [Entry] = []
    /// The place of the rule's entry by the rule's number; -1 for none.
    private var places: [Int32]

    /// Whether no rule has a guard.
    var areNone: Bool { entries.isEmpty }

    /// The hash of installs, the same on all event loops.
    package let hash: InstallHash

    package init(_ rules: RuleSet, _ hash: InstallHash = .ofProcess) {
        self.hash = hash
        places = []
        places.reserveCapacity(rules.rules.count)
        for rule in rules.rules {
            guard rule.demands.fallback != nil else {
                places.append(-1)
                continue
            }
            places.append(Int32(clamping: entries.count))
            entries.append(Entry(rule: rule.id))
        }
    }

    /// Counts a request whose install is within the rule's share. An install outside the share is
    /// not counted: its client was not refused, and does not try again.
    ///
    /// - isInstall: whether the key that the verdict names is enrolled; called only for refusals.
    package mutating func count(_ rule: Rule, _ verdict: Verdict, isInstall: () -> Bool) {
        // A request that began before a reload may have a number of the old rules.
        guard places.indices.contains(rule.index) else { return }
        let place = Int(places[rule.index])
        guard entries.indices.contains(place), entries[place].rule == rule.id,
            let keyID = verdict.keyID, !verdict.isExcused
        else { return }
        switch verdict.outcome {
        case .failure: break
        case .pass: entries[place].passed.add(hash: hash.hash(keyID))
        case .refuse(let refusal):
            let evidence = refusal.row.guardEvidence
            if case .none = evidence { return }
            guard isInstall() else { return }
            let hash = hash.hash(keyID)
            entries[place].refused.add(hash: hash)
            if case .broken = evidence { entries[place].broken.add(hash: hash) }
        }
    }

    /// Hands over the counts, and resets them.
    package mutating func take() -> [Entry] {
        var taken: [Entry] = []
        for place in entries.indices where !entries[place].isEmpty {
            taken.append(entries[place])
            entries[place] = Entry(rule: entries[place].rule)
        }
        return taken
    }
}

extension InstallSketch {
    /// Shared until an install is added to it.
    package static let empty = InstallSketch()
}
