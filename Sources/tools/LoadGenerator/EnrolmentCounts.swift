/// How far an enrolment is.
package struct EnrolmentCounts: Sendable {
    /// Devices answered 201, and 200.
    package var enrolled = 0
    package var known = 0
    /// Answers that say "later".
    package var throttled = 0
    /// How often the stand-in for Apple was asked to attest a key.
    package var attested = 0
}
