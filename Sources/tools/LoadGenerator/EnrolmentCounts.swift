/// How far an enrolment is.
package struct EnrolmentCounts: Sendable {
    /// Answered 201, 200, 429.
    package var enrolled = 0
    package var known = 0
    package var throttled = 0
}
