import AppAttest
import Challenges
import JSONText
import Telemetry
import Verification

extension ServiceResult {
    /// The answer to a call of the enrolment endpoints.
    init(_ action: Enrolment.Action) {
        switch action {
        case .challenges(let purpose, let texts, let lifetime):
            self.init(
                json: .served,
                { document in
                    document.array("challenges") { list in for text in texts { list.element(text) }
                    }
                    document.member("expires_in", lifetime)
                }
            )
            if purpose == .enrolment {
                counter = .enrolmentChallengesAdmitted
                countedTimes = UInt64(texts.count)
            }
        case .enrolled(let keyID, let isNew):
            self.init(json: isNew ? .created : .served) { $0.member("key_id", keyID.base64) }
            if isNew { counter = .enrolments }
        case .refuse(let refused):
            let details = LocalResponse.Details(waitSeconds: refused.waitSeconds)
            self.init(LocalResponse(.notEnrolled(refused.refusal), details))
            verifiedInVain = refused.isInVain
            counter = Self.counter(of: refused.refusal)
        case .store:
            preconditionFailure("ServiceResult: a key that is still to be stored is no answer")
        }
    }

    private static func counter(of refusal: Refusal) -> Counter? {
        switch refusal {
        case .enrolmentThrottled: .enrolmentsThrottled
        case .enrolmentNotYet: .enrolmentsNotYet
        case .addressThrottled: .addressVerificationsRefused
        default: nil
        }
    }

    private init(json success: LocalSuccess, _ fill: (inout JSONWriter) -> Void) {
        var document = JSONWriter(.compact)
        document.object(nil, fill)
        self.init(LocalResponse(success, "application/json", document.line))
    }
}
