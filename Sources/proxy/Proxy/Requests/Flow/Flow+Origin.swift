import HTTPWire
import Services
import Verification

// The origin: servers, attempts, the request on its way to one of them, and the response.
extension Flow {
    /// A server takes the request.
    ///
    /// - retriesMax: the most retries that the origin allows for a request.
    /// - inMemory: the number of held bytes that can be sent with the head.
    /// - mayRefuse: whether ``originRefused(_:)`` may follow.
    mutating func connected(
        _ via: Via,
        inMemory: UInt64,
        clientSent: Leg.Arrival,
        retriesMax: Int,
        mayRefuse: Bool
    ) -> Action {
        guard case .connecting(let approach) = state else { impossible("connected") }
        // A request whose assertion was used is repeated only when its method is safe. The server
        // may have executed it before its connection broke, and an assertion stands for one
        // execution.
        let isHarmless = verdictState.isProven ? facts.method.isSafe : facts.method.isIdempotent
        let leg = Leg(
            approach,
            via: via,
            facts.framing,
            held: (contentBytes, inMemory),
            repetition: Leg.Repetition(
                isHarmless: isHarmless,
                retriesMax: retriesMax,
                mayRefuse: mayRefuse
            )
        )
        state = .forwarding(leg)
        return leg.sendHead(clientSent)
    }

    /// No server took a connection.
    mutating func connectFailed(_ failure: OriginFailure) -> Action {
        guard case .connecting = state else { impossible("connectFailed") }
        return answer(.unreached(failure))
    }

    /// The head was handed to the server's connection.
    mutating func headSent() -> Action { onLeg("headSent") { $0.headSent() } }

    /// A piece of held content was handed to the server's connection.
    mutating func heldSent(_ count: Int) -> Action { onLeg("heldSent") { $0.heldSent(count) } }

    /// The server has not taken all bytes. `originDrained` follows when it has.
    mutating func originQueued() {
        _ = onLeg("originQueued") { $0.queued() }
    }

    /// The server has taken all bytes. Late where the connection no longer belongs to the request.
    mutating func originDrained() -> Action {
        leg == nil ? .none : onLeg("originDrained") { $0.drained() }
    }

    /// Bytes could not be sent.
    ///
    /// - isUntouched: whether the server has taken no byte of the request.
    mutating func writeFailed(isUntouched: Bool) -> Action {
        onLeg("writeFailed") { $0.writeFailed(isUntouched: isUntouched) }
    }

    /// The bytes that the server sent before its connection broke were read.
    mutating func lastWordsRead(_ heard: Leg.Heard, _ budget: Leg.RetryBudget) -> Action {
        // A response is under way, or has ended the request.
        isOver || hasResponse ? .none : originBroke(heard, budget)
    }

    /// The connection to the server ended or broke before its response was complete.
    mutating func originBroke(_ heard: Leg.Heard, _ budget: Leg.RetryBudget) -> Action {
        onLeg("originBroke") { $0.broke(heard, budget) }
    }

    /// The server says that it has not processed the request; like ``Leg/refused(_:)``.
    mutating func originRefused(_ budget: Leg.RetryBudget) -> Action {
        onLeg("originRefused") { $0.refused(budget) }
    }

    /// The deadline of the connection to the server has passed; like ``Leg/timedOut(client:_:_:)``.
    mutating func originTimedOut(
        client: Output,
        _ heard: Leg.Heard,
        _ budget: Leg.RetryBudget
    ) -> Action {
        onLeg("originTimedOut") { $0.timedOut(client: client, heard, budget) }
    }

    /// The last of the content was handed to the server's connection.
    mutating func contentSent() -> Action { onLeg("contentSent") { $0.contentSent() } }

    /// Held content can't be read.
    mutating func heldUnreadable() -> Action {
        guard leg != nil else { impossible("heldUnreadable") }
        return abandon(.declined(.spillFailed))
    }

    /// The head of the response has come. Interim responses are forwarded before it.
    mutating func responseBegan(_ response: ResponseKind) -> Action {
        let facts = facts
        return onLeg("responseBegan") { $0.responseBegan(response, to: facts) }
    }

    /// Both connections belong to a tunnel, which outlives the request.
    mutating func tunnelBegan() {
        guard case .forwarding(let leg) = state, !leg.hasResponse else { impossible("tunnelBegan") }
        state = .over(.whole)
    }

    /// The response is complete; it does not wait for an unfinished request.
    mutating func responseEnded() -> Action {
        if isOver { return .none }  // Late: the client has gone.
        guard case .forwarding(let leg) = state, case .responding(let response) = leg.phase else {
            impossible("responseEnded")
        }
        state = .over(leg.delivery)
        return .finish(leg.release(response.reuse))
    }

    /// The bytes are no response, or not its rest.
    mutating func responseMalformed(_ failure: OriginFailure) -> Action {
        onLeg("responseMalformed") { _ in .fails(failure) }
    }

    /// Gives the leg an event, and performs its step. Late where the request is over.
    private mutating func onLeg(_ event: StaticString, _ tell: (inout Leg) -> Leg.Step) -> Action {
        guard case .forwarding(var leg) = state else {
            if isOver { return .none }
            impossible(event)
        }
        let step = tell(&leg)
        state = .forwarding(leg)
        switch step {
        case .does(let action): return action
        case .fails(let failure): return abandon(.failed(failure))
        case .retries(let why, let content):
            let attempt = Attempt.again(leg.attempt.number + 1)
            state = .connecting(Approach(content: content, attempt: attempt, told: leg.told))
            return .retry(why, leg.release(), attempt)
        }
    }
}
