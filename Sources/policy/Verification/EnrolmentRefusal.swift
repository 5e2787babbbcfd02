/// Why a call of the enrolment endpoints is turned away, and what its answer carries.
package struct EnrolmentRefusal: Sendable {
    package let refusal: Refusal
    /// A fresh challenge, where the one in the call was no good.
    package let challenge: String?
    /// Seconds to wait, where there is too much now.
    package let waitSeconds: Int
    /// Whether the call's own content was examined and found wrong, which cost a verification. A
    /// used challenge, a rate and a store say nothing about the content.
    package let isInVain: Bool

    init(_ refusal: Refusal, challenge: String? = nil, waitSeconds: Int = 1) {
        self.init(refusal, challenge: challenge, waitSeconds: waitSeconds, isInVain: false)
    }

    private init(_ refusal: Refusal, challenge: String?, waitSeconds: Int, isInVain: Bool) {
        self.refusal = refusal
        self.challenge = challenge
        self.waitSeconds = waitSeconds
        self.isInVain = isInVain
    }

    /// A refusal of the call's own content.
    static func inVain(_ refusal: Refusal) -> EnrolmentRefusal {
        EnrolmentRefusal(refusal, challenge: nil, waitSeconds: 1, isInVain: true)
    }
}
