#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What `localizedDescription` says. The texts are English; `reason` is there for others.
extension ObjectRefusal: LocalizedError {
    /// What is wrong.
    public var errorDescription: String? { reason.summary }
    /// What was found.
    public var failureReason: String? { detail }
    /// What to look at first.
    public var recoverySuggestion: String? { reason.nextStep }
}
