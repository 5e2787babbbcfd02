public import Foundation

/// Why a text is no plan.
public enum SigningPlanError: Error, Hashable, Sendable {
    /// It is no JSON of a plan's shape. The text says where.
    case malformed(String)
    /// It is a plan of another version than 1. Take a newer client.
    case version(Int)
    /// A rule says something that this client does not know: its name, and what it says.
    case unknown(rule: String, value: String)
}

extension SigningPlanError: LocalizedError {
    /// A sentence for a log or a developer.
    public var errorDescription: String? {
        switch self {
        case .malformed(let place): "The plan can't be read: \(place)"
        case .version(let version): "The plan is of version \(version). Take a newer client."
        case .unknown(let rule, let value):
            "The plan's rule \(rule) says \(value), which this client does not know."
        }
    }
}
