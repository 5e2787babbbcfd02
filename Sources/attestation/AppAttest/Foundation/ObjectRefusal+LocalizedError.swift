#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The texts of `localizedDescription`. They are English; for other languages use `reason`.
extension ObjectRefusal: LocalizedError {
    /// What is wrong.
    public var errorDescription: String? { reason.summary }
    /// What was found.
    public var failureReason: String? { detail }
    /// What to look at first.
    public var recoverySuggestion: String? { reason.nextStep }
}
