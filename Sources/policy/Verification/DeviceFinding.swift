import Encodings
package import Rules
package import Signatures

/// The result of asking about a request's device.
package enum DeviceFinding: Hashable, Sendable {
    /// Apple's bits of the device.
    case bits(DeviceBits)
    /// The request carries no device token.
    case missing
    /// The request's text is no device token, or Apple doesn't accept it as one.
    case malformed
    /// The token was used before.
    case used
    /// The most allowed queries to Apple about tokens of the key, or of its address, are under way.
    /// The client chooses their number, so the request is refused whatever the rule says of errors.
    case crowded
    /// The memory of used tokens is full. The request is refused likewise: a token that is not
    /// remembered would be good for ever.
    case full
    /// The device's bits are unknown: Apple failed, did not answer in time or sent an unreadable
    /// answer. Or the gateway made no call, since too many wait, Apple's host is in backoff, or
    /// there is no key of the team. The rule's `device.on_error` decides.
    case unavailable
}

extension Verdict {
    /// Takes the result of asking about the device.
    mutating func settle(_ finding: DeviceFinding, _ rule: DeviceRule) {
        tokens.knowsDevice = true
        switch finding {
        case .bits(let bits):
            deviceBits = bits
            if rule.refused.contains(bits) { outcome = .refuse(.deviceFlagged) }
        case .missing: outcome = .refuse(.deviceTokenMissing)
        case .malformed: outcome = .refuse(.deviceTokenMalformed)
        case .used: outcome = .refuse(.deviceTokenUsed)
        case .crowded: outcome = .refuse(.deviceThrottled)
        case .full: outcome = .refuse(.deviceCheckUnavailable)
        case .unavailable:
            // Another party that failed before, and by which the request is refused, stays.
            if outcome == .pass || rule.onError == .refuse { outcome = .failure(.deviceCheck) }
        }
    }
}

/// What `DCDevice.generateToken` gives an app: it names the device to Apple, for the app's team.
/// Only Apple can read it.
package struct DeviceToken: Hashable, Sendable {
    /// The most characters of base64. Tokens of today have between 2,000 and 3,000.
    package static let textMax = 8192

    /// Standard base64 with padding and without line breaks, as Apple asks.
    package let text: String
    /// Names the token: equal for all spellings of its base64.
    package let digest: SHA256Digest

    /// `nil` when the text is empty, too long or no base64.
    package init?(_ text: Span<UInt8>) {
        guard (1...Self.textMax).contains(text.count), let bytes = Base64.decode(text),
            !bytes.isEmpty
        else { return nil }
        self.text = Base64.text(bytes)
        digest = SHA256.digest(of: bytes)
    }
}
