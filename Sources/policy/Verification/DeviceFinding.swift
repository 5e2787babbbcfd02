import ByteCoding
package import Rules
package import Signatures

/// What was found out about a request's device.
package enum DeviceFinding: Hashable, Sendable {
    /// Apple's bits of the device.
    case bits(DeviceBits)
    /// The request carries no device token.
    case missing
    /// What it carries is no device token, or Apple doesn't take it for one.
    case malformed
    /// The token came before.
    case used
    /// Apple is being asked about as many tokens of the key, or of its address, as is allowed. The
    /// client chooses that, so the request is refused whatever the rule says of errors.
    case crowded
    /// No token more can be remembered as used. It is refused likewise: a token that nobody
    /// remembers would be good for ever.
    case full
    /// The device's bits are unknown: Apple failed, did not answer in time or said what can't be
    /// read; or no call was made, since too many wait, Apple's host is being left alone, or no key
    /// of the team is there. The rule's `device.on_error` decides.
    case unavailable
}

extension Ruling {
    /// Whether the device is to be asked about: all else that the rule asks holds, so that a
    /// request which is refused anyway costs no call.
    package var awaitsDevice: Bool {
        level == .complete && refusal == nil
    }

    /// Takes what was found out about the device.
    package mutating func settle(_ finding: DeviceFinding, _ rule: DeviceRule) {
        switch finding {
        case .bits(let bits):
            deviceBits = bits
            if rule.refused.contains(bits) { verdict = .refuse(.deviceFlagged) }
        case .missing: verdict = .refuse(.deviceTokenMissing)
        case .malformed: verdict = .refuse(.deviceTokenMalformed)
        case .used: verdict = .refuse(.deviceTokenUsed)
        case .crowded: verdict = .refuse(.deviceThrottled)
        case .full: verdict = .refuse(.deviceCheckUnavailable)
        case .unavailable: verdict = .failure(.deviceCheck)
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
    /// Names the token: the same for all spellings of its base64.
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
