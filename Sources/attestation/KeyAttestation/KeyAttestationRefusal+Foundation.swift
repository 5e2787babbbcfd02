#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The texts of `localizedDescription`. They are English; for other languages use `reason`.
extension KeyAttestationRefusal: LocalizedError {
    /// What is wrong.
    public var errorDescription: String? { reason.summary }
    /// What was found.
    public var failureReason: String? { detail }
    /// What to look at first.
    public var recoverySuggestion: String? { reason.nextStep }
}

/// The texts of `localizedDescription`.
extension StatusListError: LocalizedError {
    /// What is wrong.
    public var errorDescription: String? { "The text is no status list of certificates." }
    /// What was found.
    public var failureReason: String? { detail }
    /// What to look at first.
    public var recoverySuggestion: String? {
        "Keep the list that was read last, and fetch it from Google again."
    }
}
