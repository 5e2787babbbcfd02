import Verification

extension LocalRow {
    /// The rows of refusals at the enrolment endpoints: those of ``refused(_:)``. But nothing is
    /// signed there, and Apple attests a key only once: where a request would be signed again, only
    /// a new key helps.
    static func notEnrolled(_ refusal: Refusal) -> LocalRow {
        let row = refused(refusal)
        guard row.nextStep == .signAgain else { return row }
        return LocalRow(row.status, row.blame, .enrol, row.title, row.companion)
    }
}
