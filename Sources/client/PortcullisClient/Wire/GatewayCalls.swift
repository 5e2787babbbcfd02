import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Calls of the gateway's own endpoints. None of them carries a proof, unless it is handed in.
struct GatewayCalls: Sendable {
    /// Challenges and how long they are good, in seconds.
    struct Challenges: Decodable, Sendable {
        let challenges: [String]
        let expires_in: Double
    }

    /// A session that was opened.
    struct Opening: Decodable, Sendable {
        let session: String
        let secret: Data
        let expires_in: Double
        let window: Int
        /// Whether the session's requests may name its key; older gateways don't say.
        let accepts_key_id: Bool?
    }

    private let endpoints: URL
    private let transport: any HTTPTransport
    private let clock: any ClientClock
    /// How long a call takes at most, its answer included, in seconds.
    private let callTime: Double

    /// The most bytes of an answer that are read.
    static let answerBytesMax = 64 << 10
    /// The longest time without a byte of an answer, in seconds.
    static let idleTime: Double = 15

    init(_ configuration: PortcullisConfiguration, transport: any HTTPTransport) {
        endpoints = configuration.endpoints
        clock = configuration.clock
        callTime = configuration.limits.callTime.seconds
        self.transport = transport
    }

    /// Asks for challenges; with a key id, for one to enrol that key.
    func challenges(
        count: Int = 1,
        enrolling keyID: String? = nil
    ) async -> Result<Challenges, EndpointFailure> {
        struct Question: Encodable {
            let purpose: String
            let count: Int
            let key_id: String?
        }
        let purpose = keyID == nil ? "assertion" : "enrolment"
        let question = Question(purpose: purpose, count: count, key_id: keyID)
        return await post("challenges", question).flatMap { data, _ in
            guard let answer = try? JSONDecoder().decode(Challenges.self, from: data),
                !answer.challenges.isEmpty
            else { return .failure(.unreachable(retryAfter: nil)) }
            return .success(answer)
        }
    }

    /// Brings an attestation.
    func register(
        keyID: String,
        _ grant: EnrolmentGrant,
        object: Data
    ) async -> Result<Void, EndpointFailure> {
        struct Question: Encodable {
            let key_id: String
            let attestation: Data
            let challenge: String
            let context: Data?
        }
        struct Answer: Decodable {
            let key_id: String
        }
        let question = Question(
            key_id: keyID,
            attestation: object,
            challenge: grant.challenge,
            context: grant.context
        )
        return await post("keys", question).flatMap { data, _ in
            // Something between app and gateway may answer with a page of its own.
            guard (try? JSONDecoder().decode(Answer.self, from: data)) != nil else {
                return .failure(.unreachable(retryAfter: nil))
            }
            return .success(())
        }
    }

    /// What came of asking for the plan.
    enum PlanAnswer: Sendable {
        case plan(Data, HTTPURLResponse)
        /// It is the one of the tag.
        case unchanged(HTTPURLResponse)
        /// There is none, none came in time, or one that is too long.
        case failed(retryAfter: Double?)
    }

    /// Asks for the plan, of at most `limit` bytes. The tag is that of the one that is known.
    func plan(unlike tag: String?, atMost limit: Int) async -> PlanAnswer {
        var request = request("plan")
        request.httpMethod = "GET"
        request.setValue("application/json", forHTTPHeaderField: "Accept")
        if let tag { request.setValue(tag, forHTTPHeaderField: "If-None-Match") }
        guard let (data, response) = await answer(to: request, .none, atMost: limit) else {
            return .failed(retryAfter: nil)
        }
        switch response.statusCode {
        case 200: return .plan(data, response)
        case 304 where tag != nil: return .unchanged(response)
        default: return .failed(retryAfter: RetryAfter.seconds(in: response, now: clock.now))
        }
    }

    /// The request that opens a session; ``Prover`` signs it.
    var sessionRequest: URLRequest { request("sessions") }

    /// Reads the answer to ``sessionRequest``.
    func opening(_ request: URLRequest) async -> (
        Result<Opening, EndpointFailure>, HTTPURLResponse?
    ) {
        switch await call(request, content: .none) {
        case .failure(let failure): return (.failure(failure.failure), failure.response)
        case .success(let (data, response)):
            guard let opening = try? JSONDecoder().decode(Opening.self, from: data),
                opening.secret.count == 32
            else { return (.failure(.unreachable(retryAfter: nil)), response) }
            return (.success(opening), response)
        }
    }

    private func request(_ name: String) -> URLRequest {
        var request = URLRequest(url: endpoints.appending(path: name))
        request.httpMethod = "POST"
        request.timeoutInterval = min(Self.idleTime, callTime)
        request.cachePolicy = .reloadIgnoringLocalCacheData
        // The app's cookies say nothing here.
        request.httpShouldHandleCookies = false
        return request
    }

    private func post(
        _ name: String,
        _ question: some Encodable
    ) async -> Result<(Data, HTTPURLResponse), EndpointFailure> {
        var request = request(name)
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        guard let content = try? JSONEncoder().encode(question) else {
            return .failure(.unreachable(retryAfter: nil))
        }
        return await call(request, content: .data(content)).mapError(\.failure)
    }

    private struct Failed: Error {
        let failure: EndpointFailure
        let response: HTTPURLResponse?
    }

    private func call(
        _ request: URLRequest,
        content: RequestContent
    ) async -> Result<(Data, HTTPURLResponse), Failed> {
        guard let (data, response) = await answer(to: request, content) else {
            return .failure(Failed(failure: .unreachable(retryAfter: nil), response: nil))
        }
        if (200..<300).contains(response.statusCode) { return .success((data, response)) }
        let retryAfter = RetryAfter.seconds(in: response, now: clock.now)
        guard let refusal = OwnAnswer(response)?.refusal else {
            // Something in between answered, or the gateway as it stops. Whatever it says of keys,
            // only its `Retry-After` is obeyed.
            let failure = EndpointFailure.unreachable(retryAfter: retryAfter)
            return .failure(Failed(failure: failure, response: response))
        }
        let failure: EndpointFailure =
            response.statusCode >= 500
            ? .unreachable(retryAfter: retryAfter)
            : .refused(reason: refusal.reason, refusal.next, retryAfter: retryAfter)
        return .failure(Failed(failure: failure, response: response))
    }

    /// The whole answer; `nil` where none came in time. A timeout of URLSession begins again with
    /// every byte, so that a server which sends one now and then would never end.
    private func answer(
        to request: URLRequest,
        _ content: RequestContent,
        atMost limit: Int = Self.answerBytesMax
    ) async -> (Data, HTTPURLResponse)? {
        let work = SharedWork<(Data, HTTPURLResponse)?>()
        let call = Task { [transport] in
            guard let answer = try? await transport.send(request, content: content),
                let data = try? await answer.content.collected(atMost: limit)
            else { return work.end(with: nil) }
            work.end(with: (data, answer.response))
        }
        defer { call.cancel() }
        return await work.value(until: clock.now.addingTimeInterval(callTime), by: clock) ?? nil
    }
}
