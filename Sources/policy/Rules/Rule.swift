package import HTTPWire
package import RequestBinding

/// The place of an origin in the configuration.
package struct OriginIndex: Hashable, Sendable {
    package let rawValue: Int

    package init(_ rawValue: Int) { self.rawValue = rawValue }
}

/// One rule: which requests it is for, where they go, and what is asked of them.
///
/// A reference, so that a request carries its rule at the price of one count.
package final class Rule: Sendable {
    /// What is asked. The initial values are those of a rule that is `off`.
    package struct Demands: Equatable, Sendable {
        package var rollout: Rollout
        /// What the assertion signs.
        package var signing = SigningForm.lines([], headers: [])
        package var challenge = ChallengeRule.none
        package var challengeSource = ChallengeSource.field
        package var counter = CounterRule.strict
        package var accept = AcceptRule.assertion
        package var body = BodyRule.none
        package var onError = DependencyErrorRule.refuse
        /// What happens to a request that says that its device can't attest.
        package var unsupported = UnsupportedRule.refuse
        package var preflight = PreflightRule.judge
        /// What the device's bits may be; `nil` for not to ask.
        package var device: DeviceRule?
        /// What is done about Apple's risk metric; `nil` where it is not looked at.
        package var risk: RiskRule?
        /// When the rule falls back to `observe` by itself; `nil` where it does not.
        package var fallback: GuardRule?
        package var fields = FieldNames.standard
        /// Keys of which apps are admitted.
        package var apps = AppScope.production
        /// Whether a response carries the next challenge.
        package var sendsNextChallenge = false

        /// Nothing signed, and everyone enforced where `mode` says so.
        package init(salt: String) { rollout = Rollout(.fixed(.whole), salt: salt) }
    }

    /// What an admitted request is for.
    package enum Goal: Hashable, Sendable {
        /// The rule's origin.
        case origin
        /// The gateway, which opens a session.
        case session
    }

    /// Stable; appears in logs, metrics, fields and the dashboard.
    package let id: String
    /// Its place in the order; dense, for metrics.
    package let index: Int
    package let match: RouteMatch
    package let goal: Goal
    /// Where its requests go; `nil` for a rule that denies them, or whose goal is no origin.
    package let origin: OriginIndex?
    package let mode: Mode
    /// What its paths may hold although it has no single reading.
    package let allowEncoded: PathConstructs
    package let demands: Demands
    /// Fields that the origin gets exactly as they were verified: signed ones, and those that the
    /// rule names itself. Standard names are guarded by their ``FieldKind`` everywhere.
    package let guardedFields: FieldNameSet
    /// Whether the device's bits are asked for. Beside `demands`, since every request looks at it.
    package let asksDevice: Bool
    /// What clients are told of it.
    package let notice: ClientNotice

    package init(
        id: String,
        index: Int,
        match: RouteMatch,
        goal: Goal = .origin,
        origin: OriginIndex?,
        mode: Mode,
        allowEncoded: PathConstructs = [],
        demands: Demands? = nil
    ) {
        self.id = id
        self.index = index
        self.match = match
        self.goal = goal
        self.origin = origin
        self.mode = mode
        self.allowEncoded = allowEncoded
        let demands = demands ?? Demands(salt: id)
        self.demands = demands
        var guarded = FieldNameSet()
        if case .lines(_, let headers) = demands.signing {
            for name in headers { guarded.insert(Array(name.utf8)) }
        }
        if demands.fields != .standard {
            for name in demands.fields.all { guarded.insert(name) }
        }
        guardedFields = guarded
        asksDevice = demands.device != nil
        notice = ClientNotice(demands)
    }

    package var rollout: Rollout { demands.rollout }
    package var signing: SigningForm { demands.signing }
    package var challenge: ChallengeRule { demands.challenge }
    package var challengeSource: ChallengeSource { demands.challengeSource }
    package var counter: CounterRule { demands.counter }
    package var accept: AcceptRule { demands.accept }
    package var body: BodyRule { demands.body }
    package var onError: DependencyErrorRule { demands.onError }
    package var unsupported: UnsupportedRule { demands.unsupported }
    package var preflight: PreflightRule { demands.preflight }
    package var device: DeviceRule? { demands.device }
    package var risk: RiskRule? { demands.risk }
    package var fields: FieldNames { demands.fields }
    package var apps: AppScope { demands.apps }
    package var sendsNextChallenge: Bool { demands.sendsNextChallenge }
}

extension Rule {
    /// Whether a request gets the same treatment by the other rule: the same origin, and the same
    /// is asked of it.
    ///
    /// Then it does not matter which of the two a path meets.
    package func decidesLike(_ other: Rule) -> Bool {
        guard origin == other.origin, mode == other.mode, allowEncoded == other.allowEncoded else {
            return false
        }
        guard mode.verifies else { return true }
        var mine = demands
        // At 0 % and 100 % no bucket is computed.
        if !dependsOnBucket, demands.rollout.schedule == other.demands.rollout.schedule {
            mine.rollout = other.demands.rollout
        }
        return mine == other.demands
    }

    /// Whether the rule treats requests differently by their bucket.
    var dependsOnBucket: Bool {
        mode == .enforce && ![.fixed(.whole), .fixed(.none)].contains(demands.rollout.schedule)
    }
}
