/// What came of asking for an enrolled key.
enum KeyOutcome: Hashable, Sendable {
    case key(String)
    case none(Proof.Absence)
}
