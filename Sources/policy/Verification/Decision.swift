package import Rules

/// What the gateway does with a request: mode × rollout × verdict.
package enum Decision: Equatable, Sendable {
    /// It goes to the origin.
    case forward
    /// The gateway answers it.
    case refuse(Refusal)

    /// The table of decisions.
    ///
    /// | | pass | refuse | failure |
    /// |---|---|---|---|
    /// | off | forward | forward | forward |
    /// | observe, or enforce for those outside the rollout | forward | forward | forward |
    /// | enforce | forward | refuse | as the rule's `on_error`, or refuse |
    /// | deny | refuse `no-rule` | refuse `no-rule`, or as disputed | refuse `no-rule` |
    ///
    /// `on_error: forward` forwards a request only if everything holds that can be judged without
    /// the party that failed. It does not forward a request whose signature could not be verified.
    /// Where Apple does not tell a device's bits, `device.on_error` decides instead, and where a
    /// token can't be checked, the `on_error` of its proof.
    ///
    /// - `isEnforced`: whether the rollout includes this client.
    package init(_ verdict: Verdict, rule: Rule, isEnforced: Bool) {
        switch rule.mode {
        case .deny:
            let dispute = verdict.refusal.flatMap { $0.isDispute ? $0 : nil }
            self = .refuse(dispute ?? .noRule)
        case .enforce where isEnforced: self.init(enforcing: rule, verdict)
        case .off, .observe, .enforce: self = .forward
        }
    }

    /// What `enforce` would do with a request of a client that the rollout includes. The rule's
    /// current mode and rollout don't matter.
    package init(enforcing rule: Rule, _ verdict: Verdict) {
        guard !verdict.isExcused else {
            self = .forward
            return
        }
        switch verdict.outcome {
        case .pass: self = .forward
        case .refuse(let refusal): self = .refuse(refusal)
        case .failure(let dependency):
            switch rule.onError(of: dependency, verdict) {
            case .forward where verdict.stands: self = .forward
            case .forward, .refuse: self = .refuse(dependency.refusal)
            }
        }
    }
}

extension Rule {
    /// The rule's choice for a request when this party has failed.
    fileprivate func onError(
        of dependency: Verdict.Dependency,
        _ verdict: Verdict
    ) -> DependencyErrorRule {
        switch dependency {
        case .store: onError
        case .deviceCheck: device?.onError ?? .refuse
        case .proof: verdict.tokens.failed?.onError ?? .refuse
        }
    }
}
