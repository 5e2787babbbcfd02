/// By what a request proves itself. The raw value is the word in the log and for the origin.
package enum ProofKind: String, CaseIterable, Sendable {
    /// A signature of the device's key.
    case assertion
    /// The code of a session that was opened with one.
    case session
}
