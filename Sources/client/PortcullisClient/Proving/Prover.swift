import Crypto
import Foundation
import RequestBinding

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Makes proofs: asks for the key, a challenge or a session, and signs.
final class Prover: Sendable {
    let enroller: Enroller
    let challenges: ChallengeKeeper
    let sessions: SessionKeeper
    private let deviceTokens: DeviceTokenSource
    private let service: TimedService
    private let calls: GatewayCalls
    private let turnstile: Turnstile
    private let transport: any HTTPTransport
    private let limits: PortcullisLimits
    private let clock: any ClientClock

    /// The key whose last request the service refused with `invalidInput`, and how many in a row it
    /// refused; `nil` where it signed the last one.
    private let unfit = Guarded<(keyID: String, requests: Int)?>(nil)
    /// Above this many requests another key is tried.
    static let unfitMax = 2

    /// How often the service is asked for one assertion.
    static let signingTries = 2
    /// How often a session is asked for before it is given up for a while.
    static let openingTries = 2

    init(
        _ configuration: PortcullisConfiguration,
        service: any AttestationService,
        store: any EnrolmentStore,
        transport: any HTTPTransport,
        events: EventHub
    ) {
        limits = configuration.limits
        clock = configuration.clock
        self.transport = transport
        self.service = TimedService(service, configuration, events: events)
        calls = GatewayCalls(configuration, transport: transport)
        enroller = Enroller(
            configuration,
            service: self.service,
            calls: calls,
            records: RecordKeeper(store: store, gateway: configuration.endpoints.absoluteString),
            events: events
        )
        challenges = ChallengeKeeper(configuration, calls: calls)
        sessions = SessionKeeper(configuration, events: events)
        deviceTokens = DeviceTokenSource(configuration)
        turnstile = Turnstile(clock: clock)
    }

    /// How long a request waits for what the gateway's endpoints give.
    private struct Waits {
        let key: Double
        let session: Double
        let challenge: Double
        /// Whether a challenge is waited for only as long as the endpoint seems to work.
        var isHasty = false
    }

    /// The longest time that a request waits for a challenge, in seconds, where its rule only
    /// observes. It is enough for a gateway that works: else a rollout would count requests without
    /// a proof that will have one once the rule enforces. Nothing else is waited for.
    static let observedWait: Double = 0.25

    private func waits(isHasty: Bool) -> Waits {
        if isHasty {
            return Waits(key: 0, session: 0, challenge: Self.observedWait, isHasty: true)
        }
        return Waits(
            key: limits.enrolmentWait.seconds,
            session: limits.sessionWait.seconds,
            challenge: limits.challengeWait.seconds
        )
    }

    /// A request with what it is to carry, as far as that can be had.
    ///
    /// - isHasty: whether its rule only observes, so that it waits neither for its key nor for a
    ///   session.
    func proven(
        _ request: CanonicalRequest,
        _ content: ReplayableContent,
        carrying want: RequestMachine.Want,
        isHasty: Bool,
        spending patience: inout Patience
    ) async -> ProvenRequest {
        let waits = waits(isHasty: isHasty)
        switch want {
        case .nothing(let absence): return bare(request, because: absence, ProofFieldNames())
        case .assertion(let requirement):
            return await asserted(
                request,
                content,
                as: requirement,
                within: waits,
                spending: &patience
            )
        case .session(let requirement):
            switch await enroller.keyID(within: 0) {
            // Another process may have put this key in the place of the one that opened it.
            case .key(let keyID): await sessions.keep(to: keyID)
            // Nor does it wait for a session that the key would open.
            case .none(let absence):
                if isHasty { return bare(request, because: absence, requirement.fields) }
            }
            let proven = await inSession(
                request,
                content,
                as: requirement,
                within: waits,
                spending: &patience
            )
            if let proven { return proven }
            guard requirement.accepts.contains(.assertion) else {
                return bare(request, because: .challengeUnavailable, requirement.fields)
            }
            return await asserted(
                request,
                content,
                as: requirement,
                within: waits,
                spending: &patience
            )
        }
    }

    /// Opens a session, if there is none.
    func openSession() async -> Bool {
        let wait = limits.sessionWait.seconds
        guard let ticket = await sessions.ticket(within: wait, opener: opener) else { return false }
        await sessions.ended(ticket)
        return true
    }

    // MARK: Assertions

    private func asserted(
        _ request: CanonicalRequest,
        _ content: ReplayableContent,
        as requirement: SigningRequirement,
        within waits: Waits,
        spending patience: inout Patience
    ) async -> ProvenRequest {
        let fields = requirement.fields
        var last = (keyID: "", error: AttestationServiceError.invalidKey)
        var token: DeviceTokenShowing?
        for _ in 0..<Self.signingTries {
            let keyID: String
            let outcome = await patience.wait(atMost: waits.key, by: clock) { seconds in
                await enroller.keyID(within: seconds)
            }
            switch outcome {
            case .key(let key): (keyID, last.keyID) = (key, key)
            case .none(let absence): return bare(request, because: absence, fields)
            }
            // Before the turn and the challenge: neither is kept waiting for it.
            if token == nil {
                token = await deviceToken(for: request, as: requirement, spending: &patience)
            }
            var challenge: KeptChallenge?
            if requirement.needsChallengeField {
                challenge = await self.challenge(waits, &patience)
                if challenge == nil, requirement.challenge == .required {
                    return bare(request, because: .challengeUnavailable, fields)
                }
            }
            var settled = settled(request, content, as: requirement)
            let signed = SignedBytes(request, content, settled: settled)
            guard var data = signed.clientData(requirement.form, challenge: challenge?.text) else {
                return bare(request, because: .requestUnfit, fields)
            }
            let number = await self.turn(atMost: patience.longest)
            // Others had their turn meanwhile, and a challenge of seconds may have ended.
            if let taken = challenge, taken.until <= clock.now {
                challenge = await self.challenge(waits, &patience) ?? taken
                data = signed.clientData(requirement.form, challenge: challenge?.text) ?? data
            }
            let (result, turn) = await assertion(keyID, over: data, in: number, spending: &patience)
            if requirement.counter != .strict { turn?.end() }
            switch result {
            case .success(let assertion):
                unfit.withLock { $0 = nil }
                let values = [
                    (fields.keyID, keyID), (fields.assertion, assertion.base64EncodedString()),
                    (fields.challenge, challenge?.text), (OwnFields.deviceToken, token?.text),
                ]
                for (name, value) in values { settled.setValue(value, forHTTPHeaderField: name) }
                return ProvenRequest(
                    request: settled,
                    proof: .assertion(keyID: keyID),
                    deviceToken: token?.outcome ?? .notAsked,
                    lease: turn
                )
            case .failure(let error):
                turn?.end()
                last.error = error
                if error == .invalidKey { await forget(keyID, error) }
                // It was tried several times, or took too long.
                if error == .serverUnavailable {
                    return bare(request, because: .serviceFailed(error), fields)
                }
            }
        }
        if last.error == .invalidInput { await refusedInput(by: last.keyID) }
        return bare(request, because: .serviceFailed(last.error), fields)
    }

    private func forget(_ keyID: String, _ error: AttestationServiceError) async {
        await enroller.forget(keyID, reason: error.rawValue)
        await sessions.forget(keyID: keyID)
    }

    /// Some devices refuse whatever a key is to sign, for good (firebase-ios-sdk #12629). After a
    /// few requests another key is tried.
    private func refusedInput(by keyID: String) async {
        let requests = unfit.withLock { unfit in
            // Another key's refusals say nothing about this one.
            let before = unfit?.keyID == keyID ? unfit?.requests ?? 0 : 0
            let requests = min(before, Self.unfitMax) + 1
            unfit = (keyID, requests)
            return requests
        }
        guard requests > Self.unfitMax else { return }
        let reason = AttestationServiceError.invalidInput.rawValue
        guard await enroller.replaceUnfit(keyID, reason: reason) else { return }
        unfit.withLock { $0 = nil }
        await sessions.forget(keyID: keyID)
    }

    private func challenge(_ waits: Waits, _ patience: inout Patience) async -> KeptChallenge? {
        await patience.wait(atMost: waits.challenge, by: clock) { seconds in
            await challenges.challenge(within: seconds, isHasty: waits.isHasty)
        }
    }

    private func turn(atMost seconds: Double) async -> Turnstile.Turn? {
        await turnstile.enter(within: min(limits.strictWait.seconds, seconds))
    }

    /// Has the data signed, in their turn.
    private func assertion(
        _ keyID: String,
        over data: SignedBytes.ClientData,
        in number: Turnstile.Turn?,
        spending patience: inout Patience
    ) async -> (Result<Data, AttestationServiceError>, turn: ProofLease?) {
        let hash = Self.hash(data)
        let wait = limits.assertionWait.seconds
        let result = await patience.waitForDevice(atMost: wait, by: clock) { seconds in
            await service.assertion(keyID, hash, within: seconds)
        }
        let turn = number.map { number in
            ProofLease(atMost: limits.strictTurn.seconds, by: clock) { [turnstile] in
                await turnstile.leave(number)
            }
        }
        return (result, turn)
    }

    /// A request without proof. One whose device can't prove says so.
    private func bare(
        _ request: CanonicalRequest,
        because absence: SentProof.Absence,
        _ fields: ProofFieldNames
    ) -> ProvenRequest {
        var bare = request.request
        if absence != .otherOrigin { OwnFields.removeProof(from: &bare, fields) }
        if isLasting(absence) { bare.setValue("1", forHTTPHeaderField: fields.unsupported) }
        return ProvenRequest(request: bare, proof: .none(absence))
    }

    /// Whether the device can't prove this request, nor one that is sent a moment later.
    private func isLasting(_ absence: SentProof.Absence) -> Bool {
        switch absence {
        case .unsupported, .serviceFailed: return true
        case .enrolling: return enroller.isDeviceBroken
        case .enrolmentHeld(let hold):
            if enroller.isDeviceBroken { return true }
            guard case .serviceFailed = hold.cause else { return false }
            return hold.until.timeIntervalSince(clock.now) > limits.enrolmentWait.seconds
        case .notAsked, .otherOrigin, .routeUnknown, .challengeUnavailable, .storeUnavailable,
            .requestUnfit, .closed:
            return false
        }
    }

    /// A request with all fields that are signed, before the proof.
    private func settled(
        _ request: CanonicalRequest,
        _ content: ReplayableContent,
        as requirement: SigningRequirement
    ) -> URLRequest {
        var settled = transport.prepared(request.request)
        OwnFields.removeProof(from: &settled, requirement.fields)
        if case .lines(let parts, let headers) = requirement.form {
            if parts.contains(.body), !content.isEmpty || requirement.needsContentDigest {
                OwnFields.setContentDigest(content.digest, in: &settled)
            }
            OwnFields.settle(headers, in: &settled, hasContent: !content.isEmpty)
            if headers.contains("cookie") {
                OwnFields.settleCookies(transport.cookies(for: settled), in: &settled)
            }
        }
        return settled
    }

    /// A new device token where the route asks for one, and it can be had.
    private func deviceToken(
        for request: CanonicalRequest,
        as requirement: SigningRequirement,
        spending patience: inout Patience
    ) async -> DeviceTokenShowing {
        guard requirement.needsDeviceToken else { return DeviceTokenShowing(outcome: .notAsked) }
        // It is good once. Another who reads it could use it first.
        guard CanonicalRequest.Origin(request.url)?.keepsSecrets == true else {
            return DeviceTokenShowing(outcome: .keptBack)
        }
        let wait = limits.deviceTokenWait.seconds
        let made = await patience.waitForDevice(atMost: wait, by: clock) { seconds in
            await deviceTokens.token(within: seconds)
        }
        switch made {
        case .success(let token):
            return DeviceTokenShowing(outcome: .sent, text: token.base64EncodedString())
        case .failure(let error): return DeviceTokenShowing(outcome: .failed(error))
        }
    }

    private static func hash(_ data: SignedBytes.ClientData) -> Data {
        switch data {
        case .bytes(let bytes): Data(SHA256.hash(data: bytes))
        case .digest(let digest): Data(digest)
        }
    }

    // MARK: Sessions

    private func inSession(
        _ request: CanonicalRequest,
        _ content: ReplayableContent,
        as requirement: SigningRequirement,
        within waits: Waits,
        spending patience: inout Patience
    ) async -> ProvenRequest? {
        let ticket = await patience.wait(atMost: waits.session, by: clock) { seconds in
            await sessions.ticket(within: seconds, opener: opener)
        }
        guard let ticket else { return nil }
        let lease = ProofLease { [sessions] in await sessions.ended(ticket) }
        var settled = settled(request, content, as: requirement)
        let signed = SignedBytes(request, content, settled: settled)
        guard let data = signed.clientData(requirement.form, sequence: ticket.sequence) else {
            return nil
        }
        let key = SymmetricKey(data: ticket.secret)
        let code = Data(HMAC<SHA256>.authenticationCode(for: data, using: key))
        settled.setValue(ticket.namedKey, forHTTPHeaderField: ProofFieldNames().keyID)
        settled.setValue(ticket.session, forHTTPHeaderField: OwnFields.session)
        settled.setValue(ticket.sequence.text, forHTTPHeaderField: OwnFields.sequence)
        settled.setValue(code.base64EncodedString(), forHTTPHeaderField: OwnFields.signature)
        let token = await deviceToken(for: request, as: requirement, spending: &patience)
        settled.setValue(token.text, forHTTPHeaderField: OwnFields.deviceToken)
        return ProvenRequest(
            request: settled,
            proof: .session(keyID: ticket.keyID),
            deviceToken: token.outcome,
            session: ticket.session,
            lease: lease
        )
    }

    private var opener: SessionKeeper.Opener {
        { [weak self] in await self?.opened() ?? .failure(.unreachable(retryAfter: nil)) }
    }

    private func opened() async -> Result<SessionKeeper.Opened, EndpointFailure> {
        var last = EndpointFailure.unreachable(retryAfter: nil)
        var hasForgottenKey = false
        for _ in 0..<Self.openingTries {
            guard let request = CanonicalRequest(calls.sessionRequest) else { break }
            let wait = limits.enrolmentWait.seconds
            // The requests that wait for the session have their own time.
            var patience = Patience(limits, timeout: wait)
            let proven = await asserted(
                request,
                .none,
                as: SigningRequirement(),
                within: waits(isHasty: false),
                spending: &patience
            )
            guard case .assertion(let keyID) = proven.proof else { break }
            let (result, response) = await calls.opening(proven.request)
            proven.lease?.end()
            let refusal = response.flatMap(OwnAnswer.init)?.refusal
            // The older ones, before the one that came.
            if refusal?.next == .signAgain { await challenges.clear() }
            if let challenge = response?.value(forHTTPHeaderField: OwnFields.challenge) {
                await challenges.add(challenge)
            }
            switch result {
            case .success(let opening):
                return .success(SessionKeeper.Opened(opening: opening, keyID: keyID))
            case .failure(let failure): last = failure
            }
            guard let refusal else { break }
            switch refusal.next {
            case .signAgain: break
            case .enrol:
                // A second key for one session would not be the last.
                guard !hasForgottenKey else { return .failure(last) }
                hasForgottenKey = true
                await enroller.forget(keyID, reason: refusal.reason)
                await sessions.forget(keyID: keyID)
            case .retryLater, .fixClient, .getToken, .none: return .failure(last)
            }
        }
        return .failure(last)
    }
}
