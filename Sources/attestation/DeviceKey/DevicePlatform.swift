/// Whose attestation vouches for a key. The raw value is the word in exports: add, never rename.
public enum DevicePlatform: String, CaseIterable, Codable, Hashable, Sendable {
    /// Apple's App Attest.
    case apple
}
