/// An answer that is not the expected one.
struct Deviation: Sendable {
    /// The request's place in the run.
    let number: UInt64
    let sending: Sending
    let expected: String
    let found: String
}
