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
    /// Stores a key. It also spends the challenge where the store does that. It reports the result
    /// later, on any thread.
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
        switch action {
        case .store(let record, let serial): return .afterCommit { stored(record, serial, nil, $0) }
        case .check(let awaited): return .afterCommit { check(awaited, request, $0) }
        case .challenges, .enrolled, .refuse: return .now(ServiceResult(action))
        }
    }

    private func stored(
        _ record: KeyRecord,
        _ serial: ChallengeSerial,
        _ note: IntegrityNote?,
        _ completion: @escaping @Sendable (ServiceResult) -> Void
    ) {
        store(record, serial) { [enrolment] outcome in
            var result = ServiceResult(enrolment.stored(outcome, spending: serial))
            result.integrity = note
            completion(result)
        }
    }

    /// Has the integrity token checked, and stores the key where that lets it.
    private func check(
        _ awaited: Enrolment.AwaitedIntegrity,
        _ request: ServiceRequest,
        _ completion: @escaping @Sendable (ServiceResult) -> Void
    ) {
        let rule = awaited.rule
        let found = { @Sendable (finding: TokenFinding) in
            let note = IntegrityNote(finding, rule)
            let action = enrolment.checked(awaited, note, at: request.tick)
            guard case .store(let record, let serial) = action else {
                var result = ServiceResult(action)
                result.integrity = note
                return completion(result)
            }
            stored(record, serial, note, completion)
        }
        let text: [UInt8]
        switch request.tokens[rule.proof] ?? .nothing {
        case .nothing: return found(.missing)
        case .unreadable: return found(.malformed)
        case .text(let shown): text = shown
        }
        // A gateway without the proof's check knows nothing of its tokens.
        guard request.tokenChecks.indices.contains(rule.proof.index) else {
            return found(.unavailable)
        }
        let shown = ShownToken(
            text: text,
            proof: rule.proof,
            rule: "",
            host: [],
            address: request.address,
            binding: awaited.binding,
            now: request.now
        )
        let checking = request.tokenChecks[rule.proof.index].check(shown, found)
        if case .known(let finding) = checking { found(finding) }
    }
}

/// `POST …/challenges`: issues challenges.
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
        // One token for each challenge; the call itself has paid the first.
        if case .challenges(_, let texts, _) = action { result.callsOwed = texts.count - 1 }
        return .now(result)
    }
}

/// `POST …/sessions`: opens a session for the key that has signed the request.
struct SessionService: Service {
    let sessions: SessionTable
    let issuer: ChallengeIssuer

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        guard let grant = request.grant else {
            preconditionFailure("SessionService: asked by a request that has proved nothing")
        }
        let now = request.now.seconds
        let opened = sessions.open(grant.keyID, grant.assertion, now: now)
        var document = JSONWriter(.compact)
        document.object { document in
            document.member("session", String(decoding: opened.id, as: UTF8.self))
            document.member("secret", Base64.text(opened.secret.array))
            document.member("expires_in", sessions.limits.lifetime)
            document.member("window", sessions.limits.window)
            // The requests may name the key. In older versions that made them malformed.
            document.member("accepts_key_id", true)
        }
        var result = ServiceResult(
            LocalResponse(
                .created,
                "application/json",
                document.line,
                challenge: String(decoding: issuer.issue(.assertion, now: now), as: UTF8.self)
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
    init(_ action: Enrolment.Action) {
        switch action {
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
        case .store, .check:
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
}
