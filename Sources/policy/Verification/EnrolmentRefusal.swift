/// Why a call of the enrolment endpoints is turned away, and what its answer carries.
///
/// It never carries a challenge: a new one has to be admitted first.
package struct EnrolmentRefusal: Error, Sendable {
    package let refusal: Refusal
    /// Seconds to wait, where there is too much now.
    package let waitSeconds: Int
    /// Whether the call's own content was examined and found wrong, which cost a verification. A
    /// used challenge, a rate and a store say nothing about the content.
    package let isInVain: Bool

    init(_ refusal: Refusal, waitSeconds: Int = 1) {
        self.init(refusal, waitSeconds: waitSeconds, isInVain: false)
    }

    private init(_ refusal: Refusal, waitSeconds: Int, isInVain: Bool) {
        self.refusal = refusal
        self.waitSeconds = waitSeconds
        self.isInVain = isInVain
    }

    /// A refusal of the call's own content.
    static func inVain(_ refusal: Refusal) -> EnrolmentRefusal {
        EnrolmentRefusal(refusal, waitSeconds: 1, isInVain: true)
    }

    /// Turned away for so many nanoseconds.
    static func waiting(_ refusal: Refusal, _ nanoseconds: UInt64) -> EnrolmentRefusal {
        let seconds = Int(clamping: nanoseconds / 1_000_000_000)
        return EnrolmentRefusal(refusal, waitSeconds: min(seconds, 86_400) + 1)
    }
}
