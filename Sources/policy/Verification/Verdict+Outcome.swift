import Cryptography
import KeyStore
package import Rules
import Synchronization

extension Verdict {
    /// The result of judging a request.
    package enum Outcome: Equatable, Sendable {
        /// All demands of the rule hold.
        case pass
        /// A demand does not hold.
        case refuse(Refusal)
        /// Unknown: a party that is needed failed.
        case failure(Dependency)

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

    /// A party that the verdict needs.
    package enum Dependency: String, CaseIterable, Sendable {
        case store
        /// Apple's DeviceCheck.
        case deviceCheck = "device-check"
        /// The issuer of a token, or the service that knows it.
        case proof

        /// The refusal where a rule refuses on its failure.
        package var refusal: Refusal {
            switch self {
            case .store: .storeUnavailable
            case .deviceCheck: .deviceCheckUnavailable
            case .proof: .proofUnavailable
            }
        }
    }
}

/// A note for operators about a signed challenge that the gateway does not know. The client does
/// not get it. The raw value is API of the log.
package enum ChallengeNote: String, Hashable, Sendable {
    /// None of the secrets that the gateways of a fleet share made its code. This gateway has not
    /// read the newest one, the issuer uses another database, or the secret is gone.
    case unknownSecret = "unknown-secret"
}

/// Apple's risk metric of a request's key, for a rule that asks for it.
package struct RiskNote: Hashable, Sendable {
    /// `nil` when it is unknown or too old.
    package let metric: UInt16?
    /// The rule's mark against the key; `nil` for none. The request may pass nevertheless.
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

/// How a request proves itself.
package enum ProofKind: Hashable, Sendable {
    /// A signature of the device's key.
    case assertion
    /// The code of a session that was opened with an assertion.
    case session
    /// A token of the section `proofs`, which is bound to no request.
    case token(TokenProof)

    /// The word in the log and for the origin: API. No token has the name of another kind.
    package var name: String {
        switch self {
        case .assertion: "assertion"
        case .session: "session"
        case .token(let proof): proof.name
        }
    }
}

/// A token bucket without a lock, which all event loops share.
package final class Throttle: Sendable {
    private let rate: TokenRate
    private let fullAt = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - perSecond: tokens refilled per second, 1…1,000,000.
    ///   - burst: tokens the bucket holds, at least 1.
    package init(perSecond: Int, burst: Int) { rate = TokenRate(perSecond, burst: burst) }

    /// Takes a token.
    ///
    /// - Parameter now: monotonic nanoseconds.
    /// - Returns: `nil` when there was one, otherwise the nanoseconds until there is.
    package func take(now: UInt64) -> UInt64? { rate.take(from: fullAt, now: now) }
}
