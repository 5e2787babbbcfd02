/// Which proofs a rule accepts.
package enum AcceptRule: Hashable, CaseIterable, Sendable {
    /// An assertion of the device's key with every request.
    case assertion
    /// That, or a session which was opened with one.
    case assertionOrSession

    package var takesSessions: Bool { self == .assertionOrSession }

    /// The proofs as rules and the wire name them, assertion first.
    package var names: [String] {
        switch self {
        case .assertion: ["assertion"]
        case .assertionOrSession: ["assertion", "session"]
        }
    }
}
