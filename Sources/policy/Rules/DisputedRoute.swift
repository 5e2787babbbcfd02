/// A request that a rule may refuse before it is judged: the gateway can't tell which request the
/// origin will execute.
///
/// It is no verdict. Each of the rules says by its mode and its rollout whether it refuses this
/// client; where none does, the request goes to the origin of the rule that was found.
package struct DisputedRoute: Sendable {
    /// Why it is disputed. The raw value is the reason on the wire.
    package enum Reason: String, CaseIterable, Sendable {
        /// The path has several interpretations, and they lead to rules that decide differently.
        case pathAmbiguous = "path-ambiguous"
        /// `Connection` names a field that the rule signs or reads. Such a field would end at the
        /// gateway, after it was verified.
        case connectionNomination = "connection-nomination"
        /// The method is that of a rule in another case, which some servers take for it.
        case methodCase = "method-case"
    }

    package let reason: Reason
    /// The rule of the path as written.
    package let found: Rule
    /// The rules of the other interpretations that decide differently, each once. They are all
    /// other rules where there are too many interpretations to look up.
    package let rivals: [Rule]
    /// Whether every interpretation was looked up, up to one that surely decides.
    package let isComplete: Bool

    init(_ reason: Reason, _ found: Rule, rivals: [Rule] = [], isComplete: Bool = true) {
        self.reason = reason
        self.found = found
        self.rivals = rivals
        self.isComplete = isComplete
    }

    /// The rule that decides about the request: one that refuses this client, or else the
    /// strictest, which observes the client. Of two that are as strict, it is the earlier one.
    ///
    /// - refuses: whether a rule refuses the client: by its mode and its rollout.
    package func deciding(_ refuses: (Rule) -> Bool) -> Rule {
        if refuses(found) { return found }
        if let rival = rivals.first(where: refuses) { return rival }
        return rivals.reduce(found) { strictest, rival in
            let (one, other) = (strictest.mode.strictness, rival.mode.strictness)
            return one < other || one == other && rival.index < strictest.index ? rival : strictest
        }
    }

    /// The other rules that would also refuse the request if they enforced, at most this number of
    /// them. The rule of the path as written comes first.
    package func others(than deciding: Rule, atMost max: Int) -> [Rule] {
        let judging = ([found] + rivals).lazy.filter { rule in
            rule !== deciding && (rule.mode == .observe || rule.mode == .enforce)
        }
        return Array(judging.prefix(max))
    }

    /// Whether all rules are off, so that there is nothing to decide.
    var isOpen: Bool { found.mode == .off && rivals.allSatisfy { $0.mode == .off } }
}

extension Mode {
    /// Greater for a mode that refuses more.
    fileprivate var strictness: Int {
        switch self {
        case .off: 0
        case .observe: 1
        case .enforce: 2
        case .deny: 3
        }
    }
}

extension Rule {
    /// Whether the rule refuses every client whose request does not pass, now and later.
    package var refusesAll: Bool { refuses { $0.schedule == .fixed(.whole) } }

    /// Whether the rule refuses a client whose request does not pass.
    ///
    /// - includes: whether the rule's rollout includes the client; asked only where the rule
    ///   enforces.
    package func refuses(_ includes: (Rollout) -> Bool) -> Bool {
        switch mode {
        case .off, .observe: false
        case .enforce: includes(rollout)
        case .deny: true
        }
    }
}
