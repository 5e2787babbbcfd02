// The response.
extension RequestFlow {
    /// The head of the response has come. Interim responses are passed on before it.
    package mutating func responseBegan(_ response: ResponseKind) -> Action {
        switch state {
        case .sending(let leg): return begin(response, leg)
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .responding, .skipping, .over:
            impossible("responseBegan")
        }
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
    package mutating func tunnelBegan() {
        switch state {
        case .sending: state = .over(.whole)
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .responding, .skipping, .over:
            impossible("tunnelBegan")
        }
    }

    /// The response is complete; an unfinished request is not waited for.
    package mutating func responseEnded() -> Action {
        switch state {
        case .responding(let leg, let response):
            state = .over(leg.delivery)
            return .finish(leg.release(response.reuse))
        case .over: return .none  // Late: the client has gone.
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .sending, .skipping:
            impossible("responseEnded")
        }
    }

    /// What came is no response, or not its rest.
    package mutating func responseMalformed(_ fault: OriginFault) -> Action {
        switch state {
        case .sending, .responding: return abandon(.failed(fault))
        case .over: return .none  // Late: the client has gone.
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .skipping:
            impossible("responseMalformed")
        }
    }
}
