import Challenges
import KeyStore
import Verification

/// `POST …/keys`: enrols a key.
struct KeyService: Service {
    /// Stores a key, spends the challenge where the store does that, and says later how it went, on
    /// any thread.
    typealias Store =
        @Sendable (KeyRecord, ChallengeSerial, @escaping @Sendable (EnrolOutcome) -> Void) -> Void

    let enrolment: Enrolment
    let store: Store

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        let action = enrolment.enrol(
            request.content.span,
            now: request.now,
            at: request.tick,
            addressWait: request.verificationWait
        )
        guard case .store(let record, let serial) = action else {
            return .now(ServiceResult(action))
        }
        return .afterCommit { [enrolment, store] completion in
            store(record, serial) { outcome in
                completion(ServiceResult(enrolment.stored(outcome, spending: serial)))
            }
        }
    }
}
