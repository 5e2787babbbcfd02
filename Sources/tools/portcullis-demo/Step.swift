/// One step of the story.
protocol Step: Sendable {
    /// What happens, in a few words.
    var title: String { get }

    /// Plays it, says what is seen, and checks its claims.
    func play(on stage: Stage) throws(DemoError)
}

/// The steps in their order.
enum Story {
    static let steps: [any Step] = [
        UnprovenRequest(), FirstEnrolment(), AdmittedRequest(), ReplayedRequest(),
        TamperedRequest(), StreamedUpload(), RevokedKey(), SecondTrial(), PartialRollout(),
        ClientPackage(),
        CountedVerdicts(),
    ]
}
