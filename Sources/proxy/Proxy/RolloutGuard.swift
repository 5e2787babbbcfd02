import AppAttest
package import Rules
package import Telemetry
package import Verification

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

    /// Takes what an event loop has counted.
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

/// What one event loop has seen of installs at rules with a guard since it was asked last.
package struct GuardCounts: Sendable {
    /// The installs of one rule.
    package struct Entry: Sendable {
        /// The rule's id.
        package let rule: String
        package internal(set) var passed = InstallSketch.empty
        /// Something of them was refused that says something of the app.
        package internal(set) var refused = InstallSketch.empty
        /// Something of them was refused that no other try heals.
        package internal(set) var broken = InstallSketch.empty

        package init(rule: String) { self.rule = rule }

        var isEmpty: Bool { passed.isEmpty && refused.isEmpty }
    }

    private var entries: [Entry] = []
    /// By the rule's number: the place of its entry, or -1.
    private var places: [Int32]

    /// Whether no rule has a guard.
    var areNone: Bool { entries.isEmpty }

    package init(_ rules: RuleSet) {
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

    /// Counts a request whose install is within the rule's share. One outside says nothing: its
    /// client was not refused, and does not try again.
    ///
    /// - isInstall: whether the key that the ruling names is enrolled; asked for refusals alone.
    package mutating func count(_ rule: Rule, _ ruling: Ruling, isInstall: () -> Bool) {
        // A request that began before a reload may have a number of the rules before.
        guard places.indices.contains(rule.index) else { return }
        let place = Int(places[rule.index])
        guard entries.indices.contains(place), entries[place].rule == rule.id,
            let keyID = ruling.keyID, !ruling.isExcused
        else { return }
        switch ruling.verdict {
        case .failure: break
        case .pass: entries[place].passed.add(hash: keyID.hashValue)
        case .refuse(let refusal):
            let evidence = refusal.guardEvidence
            if case .none = evidence { return }
            guard isInstall() else { return }
            entries[place].refused.add(hash: keyID.hashValue)
            if case .broken = evidence { entries[place].broken.add(hash: keyID.hashValue) }
        }
    }

    /// Hands over what was counted, and begins anew.
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
    /// Shared until something is added to it.
    package static let empty = InstallSketch()
}
