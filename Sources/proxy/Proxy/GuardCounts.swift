import AppAttest
package import Rules
package import Telemetry
package import Verification

/// What one lane has seen of installs at rules with a guard since it was asked last.
package struct GuardCounts: Sendable {
    /// The installs of one rule.
    package struct Entry: Sendable {
        /// The rule's id.
        package let rule: String
        /// Something of them passed.
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
