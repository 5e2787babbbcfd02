package import Rules

/// What is done with a request: mode × rollout × verdict.
package enum Decision: Equatable, Sendable {
    /// It goes to the origin.
    case forward
    /// It is answered here.
    case refuse(Refusal)

    /// The table of decisions.
    ///
    /// | | pass | refuse | failure |
    /// |---|---|---|---|
    /// | off | forward | forward | forward |
    /// | observe, or enforce for those outside the rollout | forward | forward | forward |
    /// | enforce | forward | refuse | as the rule's `on_error` |
    /// | deny | refuse `no-rule` | refuse `no-rule` | refuse `no-rule` |
    ///
    /// - `isEnforced`: whether the rollout includes this client.
    package init(_ ruling: Ruling, rule: Rule, isEnforced: Bool) {
        switch rule.mode {
        case .deny:
            self = .refuse(.noRule)
            return
        case .enforce where isEnforced && !ruling.isExcused: break
        case .off, .observe, .enforce:
            self = .forward
            return
        }
        switch ruling.verdict {
        case .pass: self = .forward
        case .refuse(let refusal): self = .refuse(refusal)
        case .failure(let dependency):
            switch rule.onError {
            case .forward: self = .forward
            case .refuse: self = .refuse(dependency.refusal)
            }
        }
    }
}
