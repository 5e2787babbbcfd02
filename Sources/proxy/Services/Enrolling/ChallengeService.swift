import Cryptography
import Verification

/// `POST …/challenges`: hands out challenges.
struct ChallengeService: Service {
    let enrolment: Enrolment

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        let action = enrolment.challenges(for: request.content.span, now: request.now.seconds)
        var result = ServiceResult(action)
        // One token for each challenge; the first was paid with the call.
        if case .challenges(let texts, _) = action { result.callsOwed = texts.count - 1 }
        return .now(result)
    }
}
