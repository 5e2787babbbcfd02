import ConfigurationReading
import RequestBinding
import Rules

/// What a rule asks of the requests that are sent.
struct RequestDemand: Sendable {
    let signing: SigningForm
    /// Where a challenge goes; `nil` when none is sent. An optional one is not sent.
    let challenge: ChallengeSource?
    let fields: FieldNames
    /// The head declares the digest of the content.
    let declaresDigest: Bool
    /// Requests of one device that may be under way together.
    let underWayMax: Int

    /// - `underWayMax`: what the user asks for; `nil` for one.
    init(_ rule: Rule, underWayMax: Int? = nil) {
        signing = rule.signing
        challenge = rule.challenge == .required ? rule.challengeSource : nil
        fields = rule.fields
        declaresDigest = if case .lines = rule.signing { rule.signing.coversBody } else { false }
        switch rule.counter {
        case .strict: self.underWayMax = 1
        // Of n under way the oldest is at most n − 1 below the highest.
        case .window(let width): self.underWayMax = min(underWayMax ?? 1, width)
        }
    }

    /// The challenge is a field of the head.
    var sendsChallengeField: Bool { challenge == .field }

    /// What can be changed so that it shows.
    func tamperings(hasContent: Bool) -> [Sending] {
        var found: [Sending] = [.tamperedSignature]
        if case .lines(let parts, _) = signing, parts.contains(.target) {
            found.append(.tamperedTarget)
        }
        if hasContent, signing.coversBody { found.append(.tamperedContent) }
        return found
    }
}
