import Cryptography
import KeyStore
import Rules

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
