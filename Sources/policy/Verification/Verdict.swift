import Cryptography
import KeyStore
import Rules
import Synchronization

/// What was found out about a request.
package enum Verdict: Equatable, Sendable {
    /// Everything that the rule asks holds.
    case pass
    /// Something does not hold.
    case refuse(Refusal)
    /// It could not be found out: a party that is needed failed.
    case failure(Dependency)

    /// A party that the verdict needs.
    package enum Dependency: String, CaseIterable, Sendable {
        case store
        /// Apple's DeviceCheck.
        case deviceCheck = "device-check"

        /// How its failure is answered where a rule refuses on it.
        package var refusal: Refusal {
            switch self {
            case .store: .storeUnavailable
            case .deviceCheck: .deviceCheckUnavailable
            }
        }
    }

    /// The word for logs and the origin: `pass`, `refuse` or `error`.
    package var word: String {
        switch self {
        case .pass: "pass"
        case .refuse: "refuse"
        case .failure: "error"
        }
    }

    /// The reason for logs, metrics and the origin; empty for a pass.
    package var reason: String {
        switch self {
        case .pass: ""
        case .refuse(let refusal): refusal.rawValue
        case .failure(let dependency): dependency.refusal.rawValue
        }
    }
}

/// What operators read about a challenge that a device has signed and the gateway does not know.
/// The client learns no more than that. The raw value is API of the log.
package enum ChallengeNote: String, Hashable, Sendable {
    /// Its code is of none of the secrets that the gateways of a fleet share: this gateway has not
    /// read the newest one, the one that issued it uses another database, or the secret is gone.
    case unknownSecret = "unknown-secret"
}

/// What Apple's risk metric says of a request's key, for a rule that asks.
package struct RiskNote: Hashable, Sendable {
    /// `nil` when it is not known, or too old.
    package let metric: UInt16?
    /// What the rule has against it; `nil` for nothing. The request may pass all the same.
    package let mark: Refusal?

    /// The value of `App-Attest-Risk`: an item of RFC 9651, a number or the token `unknown`, with
    /// the mark as its parameter.
    package var text: String {
        let value = metric.map { String($0) } ?? "unknown"
        return mark.map { "\(value);mark=\($0.rawValue)" } ?? value
    }

    init(_ rule: RiskRule, _ risk: KeyRisk, now: UnixTime) {
        metric = risk.metric(at: now.seconds, daysMax: Int64(rule.daysMax))
        let finding = rule.finding(metric)
        guard rule.objects(to: finding) else {
            mark = nil
            return
        }
        mark = finding == .unknown ? .riskUnknown : .riskExceeded
    }
}

/// By what a request proves itself. The raw value is the word in the log and for the origin.
package enum ProofKind: String, CaseIterable, Sendable {
    /// A signature of the device's key.
    case assertion
    /// The code of a session that was opened with one.
    case session
}

/// A token bucket without a lock, for all event loops at once.
package final class Throttle: Sendable {
    private let rate: TokenRate
    private let fullAt = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - perSecond: tokens that flow in, 1…1,000,000.
    ///   - burst: tokens the bucket holds, at least 1.
    package init(perSecond: Int, burst: Int) { rate = TokenRate(perSecond, burst: burst) }

    /// Takes a token.
    ///
    /// - Parameter now: monotonic nanoseconds.
    /// - Returns: `nil` when there was one, otherwise the nanoseconds until there is.
    package func take(now: UInt64) -> UInt64? { rate.take(from: fullAt, now: now) }
}
