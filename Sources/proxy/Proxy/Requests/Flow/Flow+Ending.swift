import HTTPWire
import Verification

// The ends of a request.
extension Flow {
    /// The service has its answer.
    mutating func served() -> Action {
        if isOver { return .none }  // Late: the client has gone, or the time was over.
        guard case .serving = state else { impossible("served") }
        return answer(.service)
    }

    /// What the service stores is not stored in time.
    mutating func storingTimedOut() -> Action {
        if isOver { return .none }  // Late: the client has gone, or the answer came.
        guard case .serving = state else { impossible("storingTimedOut") }
        return answer(.declined(.storeUnavailable))
    }

    /// The client is gone in both directions, and nobody has read that.
    ///
    /// What was verified whole arrives whole: nobody chooses where it ends by going away. That the
    /// client is gone shows again when something is sent to it.
    ///
    /// - Returns: whether the client's stream is to be closed.
    func clientBroke() -> Bool {
        switch state {
        case .connecting(let approach): approach.content != .held
        case .sending(let leg):
            switch leg.upload {
            case .replaying(_, .held): false
            case .given(.all), .given(.nothing): leg.output == .clear
            case .given(.unjudged), .replaying, .streaming, .abandoned: true
            }
        case .collecting, .serving, .judging, .holding, .awaitingCommit, .awaitingDevice,
            .responding, .over:
            true
        }
    }

    /// The client's stream was closed before the response was complete.
    mutating func clientClosed() -> Action {
        switch state {
        case .over: return .none  // Late: the request has ended by itself.
        case .connecting:
            state = .over(.nothing)
            return .end(.close)
        case .sending(let leg), .responding(let leg, _):
            state = .over(leg.delivery)
            return .end(leg.release(.drops))
        case .collecting, .serving, .judging, .holding, .awaitingCommit, .awaitingDevice:
            state = .over(.nothing)
            return .end(.none)
        }
    }

    /// Answers. A request that is refused by its head alone need not cost its connection: content
    /// that is here is skipped.
    mutating func answer(_ reply: Reply) -> Action {
        let content: Content
        var release = Release.none
        switch state {
        case .judging(let taken), .awaitingCommit(let taken), .awaitingDevice(let taken):
            content = taken
        case .connecting(let approach): content = approach.content
        case .serving: content = .withHead
        case .sending(let leg):
            release = leg.release(.drops)
            guard case .given = leg.upload else { return answerLast(reply, release) }
            content = .withHead
        case .collecting, .holding: return answerLast(reply, .none)
        case .responding, .over: impossible("answer")
        }
        switch content {
        case .withHead, .held:
            state = .over(delivery)
            return .answer(reply, release, .goesOn)
        case .unread:
            state = .over(delivery)
            return .answer(reply, release, .skips)
        case .released: return answerLast(reply, release)
        }
    }

    /// Answers, and the rest of the request is not read.
    mutating func answerLast(_ reply: Reply, _ release: Release) -> Action {
        state = .over(delivery)
        return .answer(reply, release, .lingers)
    }

    /// The request can't go on: it is answered, or its response is cut off.
    mutating func abandon(_ reply: Reply) -> Action {
        guard case .responding(let leg, _) = state else { return answer(reply) }
        state = .over(leg.delivery)
        return .cutOff(reply, leg.release(.drops))
    }
}

// The response.
extension Flow {
    /// The head of the response has come. Interim responses are passed on before it.
    mutating func responseBegan(_ response: ResponseKind) -> Action {
        guard case .sending(let leg) = state else { impossible("responseBegan") }
        return begin(response, leg)
    }

    private mutating func begin(_ response: ResponseKind, _ leg: Leg) -> Action {
        var reuse: OriginReuse
        var trailers: Trailers
        switch response {
        case .switching: return .beginTunnel
        case .final(let asked, let announced): (reuse, trailers) = (asked, announced)
        }
        if facts.asks(.isolation) || facts.asks(.authentication) {
            reuse = .drops
        }
        // RFC 9110 §6.5.1: for clients that said that they take them.
        if !facts.asks(.trailers) { trailers = .end }
        var leg = leg
        var held = HeldContent.keep
        var start = ResponseStart.early
        // The request will not be sent once more.
        switch leg.upload {
        case .given(.all):
            leg.upload = .given(.nothing)
            held = .drop
            start = .behindRequest
        case .given(.nothing), .given(.unjudged): start = .behindRequest
        case .streaming, .replaying, .abandoned: break
        }
        state = .responding(leg, Response(reuse: reuse, trailers: trailers))
        return .relay(start, held)
    }

    /// Both connections belong to a tunnel, which outlives the request.
    mutating func tunnelBegan() {
        guard case .sending = state else { impossible("tunnelBegan") }
        state = .over(.whole)
    }

    /// The response is complete; an unfinished request is not waited for.
    mutating func responseEnded() -> Action {
        if isOver { return .none }  // Late: the client has gone.
        guard case .responding(let leg, let response) = state else { impossible("responseEnded") }
        state = .over(leg.delivery)
        return .finish(leg.release(response.reuse))
    }

    /// What came is no response, or not its rest.
    mutating func responseMalformed(_ fault: OriginFault) -> Action {
        if isOver { return .none }  // Late: the client has gone.
        guard leg != nil else { impossible("responseMalformed") }
        return abandon(.failed(fault))
    }
}

/// Why the gateway answers a request itself, or cuts its response off.
///
/// The status, the text and the metric that follow are in one table, which is not the machine's.
enum Reply: Equatable, Sendable {
    /// The verdict about the request. It is counted with the rule's verdicts.
    case refused(Refusal)
    /// A limit or a failure, and no verdict.
    case declined(Refusal)
    /// The request can't be read, or not in one way.
    case malformed(Malformed.Reason)
    /// The origin failed before its response began, or in the middle of it.
    case failed(OriginFault)
    /// The content did not come, or came too slowly.
    case contentTimeout
    /// The request has passed here before (RFC 9110 §7.6: a gateway must not send a request to
    /// itself for ever).
    case loopDetected
    /// An OPTIONS request ends here (RFC 9110 §7.6.2).
    case lastHop
    /// What a service says.
    case service
    /// The proxy that has asked may forward the request.
    case allowed
}

/// What went wrong on the origin's side.
enum OriginFault: Equatable, Sendable {
    /// No server took a connection.
    case unreachable
    /// No server took a connection, and the last one did not answer.
    case connectTimeout
    /// No server is up, and none was asked.
    case noneUp
    /// All servers have as many connections as they may, and so many requests wait already.
    case queueFull
    /// No server had a place for a connection in time.
    case queueTimeout
    /// The last server took the connection, and the TLS handshake failed.
    case handshakeFailed
    /// No descriptor or memory for a connection: the gateway's own trouble, and no server's.
    case outOfDescriptors
    /// The connection broke.
    case closed
    /// Nothing came in time.
    case timeout
    /// What came is no response.
    case malformed(Malformed.Reason)
    case tooManyInterimResponses
}
