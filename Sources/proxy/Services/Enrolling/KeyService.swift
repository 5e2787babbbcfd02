import AppAttest
import Cryptography
import Encodings
import KeyStore
import Rules
import Telemetry
import Tokens
import Verification

/// `POST …/keys`: enrols a key.
struct KeyService: Service {
    let enrolment: Enrolment

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        var call = EnrolmentCall(request.content, now: request.now, tick: request.tick)
        call.address = request.address
        call.addressWait = request.verificationWait
        (call.tokens, call.tokenChecks) = (request.tokens, request.tokenChecks)
        switch enrolment.enrol(call) {
        case .now(let outcome): return .now(ServiceResult(outcome))
        case .afterCommit(let pending):
            return .afterCommit { completion in
                pending { outcome, note in
                    var result = ServiceResult(outcome)
                    result.integrity = note
                    completion(result)
                }
            }
        }
    }
}

/// `POST …/challenges`: issues challenges.
struct ChallengeService: Service {
    let enrolment: Enrolment

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        let caller = EnrolmentAdmission.Caller(address: request.address, entry: request.entry)
        let outcome = enrolment.challenges(
            for: request.content.span,
            from: caller,
            now: request.now,
            at: request.tick
        )
        var result = ServiceResult(outcome)
        // One token for each challenge; the call itself has paid the first.
        if case .challenges(_, let texts, _) = outcome { result.callsOwed = texts.count - 1 }
        return .now(result)
    }
}

/// `POST …/sessions`: opens a session for the key that has signed the request.
struct SessionService: Service {
    let decider: Decider

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        guard let grant = request.grant else {
            preconditionFailure("SessionService: asked by a request that has proved nothing")
        }
        let now = request.now.seconds
        let opened = decider.openSession(grant.keyID, grant.evidence, now: now)
        var document = JSONWriter(.compact)
        document.object { document in
            document.member("session", String(decoding: opened.id, as: UTF8.self))
            document.member("secret", Base64.text(opened.secret.array))
            document.member("expires_in", decider.sessions.limits.lifetime)
            document.member("window", decider.sessions.limits.window)
            // The requests may name the key. In older versions that made them malformed.
            document.member("accepts_key_id", true)
        }
        var result = ServiceResult(
            LocalResponse(
                .created,
                as: "application/json",
                document.line,
                challenge: String(decoding: decider.issue(.assertion, now: now), as: UTF8.self)
            )
        )
        result.counter = .sessionsOpened
        return .now(result)
    }
}

/// Stands in a table that is only searched: it answers like an unknown path.
struct UnservedService: Service {
    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        .now(ServiceResult(.fault(.endpointUnknown)))
    }
}

extension ServiceResult {
    /// The answer to a call of the enrolment endpoints.
    init(_ outcome: Enrolment.Outcome) {
        switch outcome {
        case .challenges(let purpose, let texts, let lifetime):
            self.init(json: .served) { document in
                document.texts("challenges", texts)
                document.member("expires_in", lifetime)
            }
            if purpose == .enrolment {
                counter = .enrolmentChallengesAdmitted
                countedTimes = UInt64(texts.count)
            }
        case .enrolled(let keyID, let isNew):
            self.init(json: isNew ? .created : .served) { $0.member("key_id", keyID.base64) }
            if isNew { counter = .enrolments }
        case .refuse(let refused):
            var details = LocalResponse.Details(waitSeconds: refused.waitSeconds)
            // App IDs are no secret, and a wrong team prefix is visible nowhere else.
            if let app = refused.foreignApp {
                details.list = ("app_id_sha256", [Hex.text(app.bytes)])
            }
            self.init(LocalResponse(.notEnrolled(refused.refusal), details))
            verifiedInVain = refused.isInVain
            counter = Self.counter(of: refused.refusal)
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
}
