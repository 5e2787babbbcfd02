/// A rule as operators know it.
package struct RuleFacts: Sendable {
    package var id: String
    /// off, observe or enforce.
    package var mode: String
    /// The share for which it refuses, in the words of the configuration: `25%`.
    package var rollout: String
    /// The name of the origin it forwards to.
    package var origin: String

    package init(id: String, mode: String, rollout: String, origin: String) {
        self.id = id
        self.mode = mode
        self.rollout = rollout
        self.origin = origin
    }
}
