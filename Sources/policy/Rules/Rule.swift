package import Encodings
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
    /// What is asked, and of whom. The initial values are those of a rule that is `off`.
    package struct Demands: Equatable, Sendable {
        package var mode: Mode
        package var rollout: Rollout
        package var goal = Goal.origin
        /// What paths may hold although it has no single interpretation.
        package var allowEncoded: PathConstructs = []
        package var signing = SigningForm.lines([], headers: [])
        package var challenge = ChallengeRule.none
        package var challengeSource = ChallengeSource.field
        package var counter = CounterRule.standard
        package var accept = AcceptRule.assertion
        /// Tokens that every request carries beside its proof.
        package var also: [TokenProof] = []
        package var body = BodyRule.none
        package var onError = DependencyErrorRule.refuse
        /// What happens to a request that says that its device can't attest.
        package var unsupported = UnsupportedRule.refuse
        package var preflight = PreflightRule.judge
        /// What the device's bits may be; `nil` for not to ask.
        package var device: DeviceRule?
        /// What is done about Apple's risk metric; `nil` where it is not looked at.
        package var risk: RiskRule?
        /// What is asked of Google Play's verdict about an Android phone; `nil` for nothing.
        package var integrity: IntegrityRule?
        /// When the rule falls back to `observe` by itself; `nil` where it does not.
        package var fallback: GuardRule?
        /// How often one device may make requests; `nil` for no limit.
        package var rate: RateRule?
        package var fields = FieldNames.standard
        /// Keys of which apps are admitted.
        package var apps = AppScope.production
        /// Whether a response carries the next challenge.
        package var sendsNextChallenge = false

        /// Nothing signed, and everyone enforced where `mode` says so.
        package init(salt: String, mode: Mode) {
            self.mode = mode
            rollout = Rollout(.fixed(.whole), salt: salt)
        }

        /// The named tokens, each once.
        var tokens: [TokenProof] {
            var named = accept.tokens
            if case .require(let token) = unsupported { named.append(token) }
            return (named + also + [integrity?.proof].compactMap(\.self)).reduce(into: []) {
                if !$0.contains($1) { $0.append($1) }
            }
        }
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
    /// Where its requests go; `nil` for a rule that denies them, or whose goal is no origin.
    package let origin: OriginIndex?
    package let demands: Demands
    /// Beside `demands`, since every request looks at it.
    package let mode: Mode
    /// Fields that the origin gets exactly as they were verified: signed ones, and those that the
    /// rule names itself. Standard names are guarded by their ``FieldKind`` everywhere.
    package let guardedFields: FieldNameSet
    /// Whether the device's bits are asked for. Beside `demands`, since every request looks at it.
    package let asksDevice: Bool
    /// The tokens that a request may or must carry, each once, in the order of the rule.
    package let tokens: [TokenProof]
    /// Whether it names a token. Beside `tokens`, since every request looks at it.
    package let namesTokens: Bool
    /// How often one device may make requests. Beside `demands`, since every request looks at it.
    package let rate: RateRule?
    /// What clients learn of it.
    package let notice: ClientNotice

    package init(
        id: String,
        index: Int,
        match: RouteMatch,
        origin: OriginIndex?,
        demands: Demands
    ) {
        self.id = id
        self.index = index
        self.match = match
        self.origin = origin
        self.demands = demands
        mode = demands.mode
        var guarded = FieldNameSet()
        if case .lines(_, let headers) = demands.signing {
            for name in headers { guarded.insert(Array(name.utf8)) }
        }
        if demands.fields != .standard {
            for name in demands.fields.all { guarded.insert(name) }
        }
        tokens = demands.tokens
        namesTokens = !tokens.isEmpty
        for case .field(let name) in tokens.map(\.place) { guarded.insert(name) }
        guardedFields = guarded
        asksDevice = demands.device != nil
        rate = demands.rate
        notice = ClientNotice(demands)
    }

    /// A rule that asks for nothing.
    package convenience init(
        id: String,
        index: Int,
        match: RouteMatch,
        origin: OriginIndex?,
        mode: Mode
    ) {
        let demands = Demands(salt: id, mode: mode)
        self.init(id: id, index: index, match: match, origin: origin, demands: demands)
    }

    package var goal: Goal { demands.goal }
    package var allowEncoded: PathConstructs { demands.allowEncoded }
    package var rollout: Rollout { demands.rollout }
    package var signing: SigningForm { demands.signing }
    package var challenge: ChallengeRule { demands.challenge }
    package var challengeSource: ChallengeSource { demands.challengeSource }
    /// The place of the challenge in the content; `nil` where it is not looked for there.
    package var challengePointer: JSONPointer? {
        guard challenge != .none, case .jsonPointer(let pointer) = challengeSource else {
            return nil
        }
        return pointer
    }
    package var counter: CounterRule { demands.counter }
    package var accept: AcceptRule { demands.accept }
    package var also: [TokenProof] { demands.also }
    package var body: BodyRule { demands.body }
    package var onError: DependencyErrorRule { demands.onError }
    package var unsupported: UnsupportedRule { demands.unsupported }
    package var preflight: PreflightRule { demands.preflight }
    package var device: DeviceRule? { demands.device }
    package var risk: RiskRule? { demands.risk }
    package var integrity: IntegrityRule? { demands.integrity }
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
        if let risk = demands.risk, let theirs = other.demands.risk, !risk.dependsOnBucket,
            risk.rollout.schedule == theirs.rollout.schedule
        {
            mine.risk?.rollout = theirs.rollout
        }
        // Rules of one rate count apart. A request that is spelled in two ways may use both.
        if let rate = demands.rate, let theirs = other.demands.rate, rate.pace == theirs.pace,
            rate.burst == theirs.burst
        {
            mine.rate = theirs
        }
        return mine == other.demands
    }

    /// Whether the rule treats requests differently by their bucket.
    var dependsOnBucket: Bool {
        mode == .enforce && demands.rollout.dependsOnBucket
    }
}

/// How the content of a request takes part in the verdict.
package enum BodyRule: Hashable, Sendable {
    /// Not signed; streamed as it comes.
    case none
    /// Held until it was hashed and judged: up to `memory` bytes in memory, then in a file. The
    /// origin sees nothing of the request before. At most `limit` bytes.
    case held(limit: ByteCount, memory: ByteCount)
    /// The head carries the digest and is judged alone. The content streams and is compared with
    /// the digest, and its last bytes are withheld until they agree; otherwise the origin's
    /// connection is reset. Safe only where the origin discards incomplete requests. At most
    /// `limit` bytes.
    case streamed(limit: ByteCount)

    /// The most bytes of content; `nil` for no limit.
    package var limit: ByteCount? {
        switch self {
        case .none: nil
        case .held(let limit, _): limit
        case .streamed(let limit): limit
        }
    }
}

/// Whether a request must carry a challenge.
package enum ChallengeRule: String, CaseIterable, Sendable {
    /// A request without one is refused.
    case required
    /// Verified and spent where there is one; in the line form its absence is signed as `-`.
    case optional
    /// Not looked at.
    case none
}

/// Where a request carries its challenge.
package enum ChallengeSource: Hashable, Sendable {
    /// In the challenge field of the head.
    case field
    /// In the content, a JSON text, at this place.
    ///
    /// Only where the content itself is signed, so that the challenge is covered.
    case jsonPointer(JSONPointer)
}

/// Which counters of a key are admitted after the highest one seen.
///
/// No rule admits a counter twice: what each has admitted is kept for all of them (`CounterState`).
package enum CounterRule: Hashable, Sendable {
    /// Greater than all before: a client must send one request at a time, and its requests under
    /// other rules wait for the answer, too.
    case strict
    /// Greater, or unseen and at most this far below the highest (1…64), each once.
    ///
    /// For apps that send requests concurrently, which then arrive out of order.
    case window(Int)

    /// The widths a window may have: the store keeps one bit for each of 64 counters.
    package static let windowRange = 1...64

    /// Of a rule that says nothing: the widest window.
    ///
    /// A narrower one would cost the store the same, and refuse honest requests sooner. What
    /// `strict` has beyond a window: a request that was held back on its way, or refused for
    /// another reason than its counter, is worthless once a later one was admitted. In a window it
    /// is good until 64 later ones were, or until its challenge ends, and still once.
    package static let standard = CounterRule.window(windowRange.upperBound)
}

extension Rule {
    /// The rule of `POST …/sessions`: always enforced, signed in lines with a challenge, for keys
    /// of these apps.
    ///
    /// It is in no rule set, so that its number is that of no rule.
    package static func openingSessions(apps: [String]) -> Rule {
        var demands = Demands(salt: "sessions", mode: .enforce)
        demands.signing = .lines(.all, headers: [])
        demands.challenge = .required
        // Beside other requests of the app, which may overtake it. The challenge is spent in any
        // case.
        demands.counter = .standard
        demands.apps = .named(apps)
        demands.goal = .session
        return Rule(id: "sessions", index: .max, match: .all, origin: nil, demands: demands)
    }
}

/// Keys of which apps a rule admits.
package enum AppScope: Hashable, Sendable {
    /// Of every production app (``AppPolicy/isProduction``).
    case production
    /// Of these apps, by App ID, in the order of the rule.
    case named([String])

    /// Whether keys of this app are admitted.
    package func admits(_ app: AppPolicy) -> Bool {
        switch self {
        case .production: app.isProduction
        case .named(let ids): ids.contains(app.id)
        }
    }
}

/// The fields of a request in which a rule looks, in lower case.
package struct FieldNames: Hashable, Sendable {
    package var keyID: [UInt8]
    package var assertion: [UInt8]
    package var challenge: [UInt8]
    package var unsupported: [UInt8]

    package init(keyID: [UInt8], assertion: [UInt8], challenge: [UInt8], unsupported: [UInt8]) {
        self.keyID = keyID
        self.assertion = assertion
        self.challenge = challenge
        self.unsupported = unsupported
    }

    /// The names used where a rule says nothing else.
    package static let standard = FieldNames(
        keyID: Array("app-attest-key-id".utf8),
        assertion: Array("app-attest-assertion".utf8),
        challenge: Array("app-attest-challenge".utf8),
        unsupported: Array("app-attest-unsupported".utf8)
    )

    /// All four, in the order of the properties.
    package var all: [[UInt8]] { [keyID, assertion, challenge, unsupported] }
}
