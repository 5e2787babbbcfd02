/// Why a text is no plan.
public enum SigningPlanError: Error, Hashable, Sendable {
    /// It is no JSON of a plan's shape. The text says where.
    case malformed(String)
    /// It is a plan of another version than 1. Take a newer client.
    case version(Int)
    /// A rule says something that this client does not know: its name, and what it says.
    case unknown(rule: String, value: String)
}
