import ByteCoding
package import Cryptography

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
        guard (1...Self.textMax).contains(text.count), let octets = Base64.decode(text),
            !octets.isEmpty
        else { return nil }
        self.text = Base64.text(octets)
        digest = SHA256.digest(of: octets)
    }
}
