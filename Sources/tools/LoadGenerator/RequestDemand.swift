import RequestBinding
import Rules

/// The demands of a rule on the requests.
struct RequestDemand: Sendable {
    let signing: SigningForm
    /// The place of the challenge; `nil` when none is sent. An optional one is not sent.
    let challenge: ChallengeSource?
    let fields: FieldNames
    /// The head declares the digest of the content.
    let declaresDigest: Bool
    /// The field of a token of Play Integrity, which phones show; empty where none is shown.
    var tokenField: [UInt8] = []
    /// Requests of one device that may be under way together.
    let underWayMax: Int

    /// - `underWayMax`: the user's choice; `nil` for one.
    init(_ rule: Rule, underWayMax: Int? = nil) {
        signing = rule.signing
        challenge = rule.challenge == .required ? rule.challengeSource : nil
        fields = rule.fields
        declaresDigest = if case .lines = rule.signing { rule.signing.coversBody } else { false }
        switch rule.counter {
        case .strict: self.underWayMax = 1
        // The oldest of n requests under way is at most n − 1 below the highest one.
        case .window(let width): self.underWayMax = min(underWayMax ?? 1, width)
        }
    }

    /// The changes that the gateway can detect.
    func tamperings(hasContent: Bool) -> [Sending] {
        var found: [Sending] = [.tamperedSignature]
        if case .lines(let parts, _) = signing, parts.contains(.target) {
            found.append(.tamperedTarget)
        }
        if hasContent, signing.coversBody { found.append(.tamperedContent) }
        return found
    }
}
