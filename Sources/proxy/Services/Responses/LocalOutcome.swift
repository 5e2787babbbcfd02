package import HTTPWire
package import Verification

/// Why the gateway answers a request itself. ``row`` has the answer.
package enum LocalOutcome: Hashable, Sendable {
    /// A verdict about the request.
    case refused(Refusal)
    /// A verdict about a call of the enrolment endpoints.
    case notEnrolled(Refusal)
    /// It is no well-formed HTTP request.
    case malformed(Malformed.Reason)
    /// The origin gave no response that could be relayed.
    case failed(OriginFailure)
    /// It can't be served here or now, for a reason of HTTP or of a service.
    case fault(LocalFault)
    /// A service has done its work.
    case done(LocalSuccess)
}

extension LocalOutcome {
    /// The row of the outcome in the table of local responses.
    package var row: LocalRow {
        switch self {
        case .refused(let refusal): refusal.row.answer
        case .notEnrolled(let refusal): refusal.row.answerToEnrolment
        case .malformed(let reason): .malformed(reason)
        case .failed(let failure): .failed(failure)
        case .fault(let fault): .fault(fault)
        case .done(let success): .done(success)
        }
    }

    package var status: Int { row.status }

    /// One sentence for operators.
    package var meaning: String {
        switch self {
        case .refused(let refusal), .notEnrolled(let refusal): refusal.row.meaning
        case .malformed, .failed, .fault, .done: row.title
        }
    }

    /// Whether a client can cause it alone, as often as it likes.
    package var isClients: Bool {
        // A client's own Via looks like a loop.
        if case .fault(.loopDetected) = self { return true }
        return row.blame == .client
    }

    /// Whether the client's connection ends with the answer, whatever was read of the request.
    ///
    /// - toQuestion: whether another proxy asks about the request. If that request is malformed,
    ///   the proxy's connection stays, since it carries questions about other requests.
    package func endsConnection(toQuestion: Bool) -> Bool {
        if toQuestion, case .malformed = self { return false }
        return row.ending == .connection
    }

    /// The wire's `reason`, the metric label and the log's `problem`; empty without a fault.
    package var reason: String {
        switch self {
        case .refused(let refusal), .notEnrolled(let refusal): refusal.rawValue
        case .malformed(let reason): reason.rawValue
        case .failed(let failure): failure.rawValue
        case .fault(let fault): fault.rawValue
        case .done: ""
        }
    }
}

/// The work that a service has done.
package enum LocalSuccess: CaseIterable, Sendable {
    /// The answer has the requested data.
    case served
    /// The client already has the requested data (RFC 9110 §15.4.5).
    case unchanged
    /// A new key is enrolled.
    case created
    /// The client may send its content (RFC 9110 §15.2.1).
    case continued
    /// OPTIONS with Max-Forwards: 0 ends here (RFC 9110 §7.6.2).
    case lastHop
    /// The proxy that has asked may forward the request.
    case allowed
}

extension LocalRow {
    static func done(_ success: LocalSuccess) -> LocalRow {
        switch success {
        case .served, .lastHop, .allowed: LocalRow(200, .nobody, .unsaid, "")
        case .unchanged: LocalRow(304, .nobody, .unsaid, "")
        case .continued: LocalRow(100, .nobody, .unsaid, "")
        case .created: LocalRow(201, .nobody, .unsaid, "")
        }
    }
}

/// A failure on the origin's side before a response began. The raw value is the wire's `reason` and
/// the log's `problem`: add, do not rename.
package enum OriginFailure: String, CaseIterable, Sendable {
    case originUnreachable = "origin-unreachable"
    /// No server is up, and none was asked.
    case originDown = "origin-down"
    /// All servers have the most connections allowed, and the queue is full.
    case originQueueFull = "origin-queue-full"
    /// No server had a place for a connection in time.
    case originQueueTimeout = "origin-queue-timeout"
    /// The TLS handshake failed; the log's `origin_tls` says why.
    case originTLSFailed = "origin-tls-failed"
    /// The server takes the connection and does not speak HTTP/2, which its origin asks for.
    case originNotHTTP2 = "origin-not-http2"
    /// The server says that it has not processed the request, and takes it in no other attempt.
    case originRefused = "origin-refused"
    /// No descriptor or memory is left for a connection. That is the gateway's fault, not a
    /// server's.
    case outOfDescriptors = "out-of-descriptors"
    case originClosed = "origin-closed"
    case originTimeout = "origin-timeout"
    case responseMalformed = "response-malformed"
    case tooManyInterimResponses = "too-many-interim-responses"
}

extension LocalRow {
    /// The rows of an origin's failures: RFC 9110 §15.6.3, §15.6.4, §15.6.5.
    static func failed(_ failure: OriginFailure) -> LocalRow {
        switch failure {
        case .originUnreachable:
            LocalRow(502, .origin, .unsaid, "No server of the origin can be reached.")
        case .originDown: later(503, .origin, "No server of the origin is up.")
        case .originQueueFull: later(503, .origin, "Too many requests wait for the origin.")
        case .originQueueTimeout: later(503, .origin, "The origin had no place in time.")
        case .originTLSFailed:
            LocalRow(502, .origin, .unsaid, "No server of the origin can be trusted or understood.")
        case .originNotHTTP2:
            LocalRow(502, .origin, .unsaid, "No server of the origin speaks HTTP/2.")
        case .originRefused: later(503, .origin, "The origin takes no more requests now.")
        case .outOfDescriptors: later(503, .gateway, "The gateway can't connect now.")
        case .originClosed:
            LocalRow(502, .origin, .unsaid, "The origin closed its connection without an answer.")
        case .originTimeout: LocalRow(504, .origin, .unsaid, "The origin did not answer in time.")
        case .responseMalformed:
            LocalRow(
                502,
                .origin,
                .unsaid,
                "The origin's answer can't be read."
            ).calling(.internalError)
        case .tooManyInterimResponses:
            LocalRow(
                502,
                .origin,
                .unsaid,
                "The origin sent too many interim answers."
            ).calling(.internalError)
        }
    }
}

/// Why the gateway can't serve a request here or now, whatever its rule. The raw value is the
/// wire's `reason`: add, do not rename.
package enum LocalFault: String, CaseIterable, Sendable {
    // Requests on their way.
    case loopDetected = "loop-detected"
    case headTimeout = "head-timeout"
    case bodyTimeout = "body-timeout"
    // Queries of other proxies.
    case askerUntrusted = "asker-untrusted"
    case questionUnclear = "question-unclear"
    case protocolRefused = "protocol-refused"
    case fieldDisguised = "field-disguised"
    // Services of the public listeners.
    case endpointUnknown = "no-such-endpoint"
    case methodNotAllowed = "method-not-allowed"
    // Services of the operators' listener.
    case pageUnknown = "page-unknown"
    case methodRefused = "method-refused"
    case contentRefused = "content-refused"
    case hostRefused = "host-refused"
    case crossSite = "cross-site"
    case tokenMissing = "token-missing"
    case tokenWrong = "token-wrong"
    case gatherTimeout = "gather-timeout"
    case draining = "draining"
    case drained = "drained"
    case storeDegraded = "store-degraded"
    case storeUnwritable = "store-unwritable"
    case serversUnknown = "servers-unknown"
    case originsDown = "origins-down"
    case noSuchServer = "no-such-server"
    case noSuchRule = "no-such-rule"
    case ruleVerifiesNothing = "rule-verifies-nothing"
    case rolloutUnsaved = "rollout-unsaved"
    case rolloutStale = "rollout-stale"
    case upgradeRefused = "upgrade-refused"
    case upgradeRunning = "upgrade-running"
    case noSuchRefusal = "no-such-refusal"
    case noSuchGateway = "no-such-gateway"
}

extension LocalFault {
    /// Those of requests on their way, which no rule is asked about.
    package static var ofRequests: ArraySlice<LocalFault> {
        allCases.prefix { $0 != .endpointUnknown }
    }
}

extension LocalRow {
    /// The rows of requests that can't be served here or now.
    static func fault(_ fault: LocalFault) -> LocalRow {
        switch fault {
        case .loopDetected:
            // RFC 5842 §7.2. A gateway must not send a request to itself for ever (RFC 9110 §7.6).
            LocalRow(508, .gateway, .unsaid, "The request has passed this gateway before.")
        case .headTimeout:
            LocalRow(408, .client, .unsaid, "The request's head did not arrive in time.")
        case .bodyTimeout:
            LocalRow(408, .client, .unsaid, "The request's content did not arrive in time.")
        case .askerUntrusted:
            LocalRow(403, .gateway, .unsaid, "This address may not ask for decisions.")
        case .questionUnclear:
            LocalRow(400, .gateway, .unsaid, "The question does not name one request.")
        case .protocolRefused:
            LocalRow(400, .client, .fixClient, "The request asks for a protocol but WebSocket.")
        case .fieldDisguised:
            LocalRow(400, .client, .fixClient, "A field's name can be taken for another one.")
        case .endpointUnknown:
            LocalRow(404, .client, .fixClient, "The gateway has no such endpoint.")
        case .methodNotAllowed:
            LocalRow(405, .client, .fixClient, "The endpoint has no such method.", .allow)
        case .pageUnknown: LocalRow(404, .client, .fixClient, "There is no such page.")
        case .methodRefused:
            LocalRow(405, .client, .fixClient, "The page has no such method.", .allow)
        case .contentRefused:
            LocalRow(
                413,
                .client,
                .fixClient,
                "Requests with content are not served."
            ).endingConnection
        case .hostRefused:
            LocalRow(
                403,
                .client,
                .fixClient,
                "Ask by an IP address, localhost or a name of admin.hosts."
            )
        case .crossSite:
            LocalRow(403, .client, .fixClient, "A page of another site has sent the request.")
        case .tokenMissing:
            LocalRow(401, .client, .fixClient, "This call needs the operators' token.", .bearer)
        case .tokenWrong:
            LocalRow(401, .client, .fixClient, "This is not the operators' token.", .bearer)
        case .gatherTimeout: later(503, .gateway, "The event loops did not answer in time.")
        case .draining: later(503, .gateway, "The gateway ends.")
        case .drained: later(503, .gateway, "Operators have drained the gateway.")
        case .storeDegraded: later(503, .gateway, "The key store can't be used.")
        case .storeUnwritable: later(503, .gateway, "The key store can't be written.")
        case .serversUnknown: later(503, .gateway, "No server of any origin has an address.")
        case .originsDown: later(503, .origin, "No server of any origin can serve.")
        case .noSuchServer:
            LocalRow(404, .client, .fixClient, "No origin has a server of this name.")
        case .noSuchRule: LocalRow(404, .client, .fixClient, "There is no rule of this id.")
        case .ruleVerifiesNothing:
            LocalRow(409, .client, .fixClient, "The rule's file does not say how to verify.")
        case .rolloutUnsaved: later(503, .gateway, "The change could not be saved.")
        case .rolloutStale:
            LocalRow(409, .client, .retryLater, "The fleet has a newer order; look, then decide.")
        case .upgradeRefused: later(503, .gateway, "There was no upgrade; nothing has changed.")
        case .upgradeRunning:
            LocalRow(409, .gateway, .retryLater, "An upgrade is under way; try again afterwards.")
        case .noSuchRefusal:
            LocalRow(404, .client, .fixClient, "No refusal of this name is remembered.")
        case .noSuchGateway:
            LocalRow(404, .client, .fixClient, "The fleet has no gateway of this name.")
        }
    }
}
