import Cryptography
import Verification

/// `POST …/challenges`: hands out challenges.
struct ChallengeService: Service {
    let enrolment: Enrolment

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        let caller = EnrolmentAdmission.Caller(address: request.address, entry: request.entry)
        let action = enrolment.challenges(
            for: request.content.span,
            from: caller,
            now: request.now,
            at: request.tick
        )
        var result = ServiceResult(action)
        // One token for each challenge; the first was paid with the call.
        if case .challenges(_, let texts, _) = action { result.callsOwed = texts.count - 1 }
        return .now(result)
    }
}
