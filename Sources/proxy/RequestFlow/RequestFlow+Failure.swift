import HTTPWire
import Verification

// Failures of the server.
extension RequestFlow {
    /// What a connection has brought before it broke.
    package enum Heard: Equatable, Sendable {
        case nothing
        /// The beginning of a response, or an interim one.
        case something
    }

    /// Whether another retry would be too many for the origin now.
    package enum RetryBudget: Equatable, Sendable { case left, spent }

    /// Bytes could not be sent.
    ///
    /// - isUntouched: whether the server has taken no byte of the request.
    package mutating func writeFailed(isUntouched: Bool) -> Action {
        switch state {
        case .sending(var leg):
            if isUntouched, isReused(leg), hasAll(leg) {
                // Not one byte of the request was taken: any method may be sent again.
                return retry(leg, .unsent)
            }
            if case .streaming(let trace) = leg.upload { leg.upload = .abandoned(trace) }
            state = .sending(leg)
            return .readLastWords
        case .responding(var leg, let response):
            if case .streaming(let trace) = leg.upload { leg.upload = .abandoned(trace) }
            state = .responding(leg, response)
            return .readLastWords
        case .over: return .none  // Late: the response has ended meanwhile.
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .skipping:
            impossible("writeFailed")
        }
    }

    /// What the server said before its connection broke was read.
    package mutating func lastWordsRead(_ heard: Heard, _ budget: RetryBudget) -> Action {
        switch state {
        case .sending: return originBroke(heard, budget)
        // A response is under way, or has ended the request.
        case .responding, .over: return .none
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .skipping:
            impossible("lastWordsRead")
        }
    }

    /// The connection to the server has ended or broken before its response was complete.
    package mutating func originBroke(_ heard: Heard, _ budget: RetryBudget) -> Action {
        switch state {
        case .sending(let leg):
            // The request may be sent once more if that does no harm and all of it is still here
            // (RFC 9112 §9.3.1, RFC 9110 §9.2.2); the verdict stays as it is. An idle connection
            // may be closed by the origin in the moment it is taken: that one is always allowed.
            guard case .nothing = heard, mayRepeat(leg), isReused(leg) || budget == .left else {
                return abandon(.failed(.closed))
            }
            return retry(leg, .broken)
        // RFC 9112 §8: a short response must not look like a whole one.
        case .responding: return abandon(.failed(.closed))
        case .over: return .none  // Late.
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .skipping:
            impossible("originBroke")
        }
    }

    /// The time of the connection to the server has passed.
    ///
    /// - client: whether the client takes what is sent to it.
    /// - heard: what came before; - budget: whether the origin has retries left.
    package mutating func originTimedOut(
        client: Output,
        _ heard: Heard,
        _ budget: RetryBudget
    ) -> Action {
        switch state {
        case .sending(let leg):
            // Every retry costs the client as long again, so the reused connection is no excuse.
            guard case .nothing = heard, budget == .left, mayRepeat(leg),
                leg.attempt.number < leg.retriesMax
            else { return abandon(.failed(.timeout)) }
            return retry(leg, .timedOut)
        case .responding:
            // The client is what stands still; its own deadline is running.
            if case .queued = client { return .awaitOrigin }
            return abandon(.failed(.timeout))
        case .over: return .none  // Late.
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .skipping:
            impossible("originTimedOut")
        }
    }

    /// Content that is held can't be read.
    package mutating func heldUnreadable() -> Action {
        switch state {
        case .sending, .responding: return abandon(.declined(.spillFailed))
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .skipping, .over:
            impossible("heldUnreadable")
        }
    }

    private func isReused(_ leg: Leg) -> Bool {
        if case .reused = leg.via, case .first = leg.attempt { true } else { false }
    }

    /// Whether all of the request is still here.
    private func hasAll(_ leg: Leg) -> Bool {
        switch leg.upload {
        case .streaming(.nothing), .abandoned(.nothing), .replaying, .given(.all): true
        case .streaming(.some), .streaming(.unjudged), .abandoned(.some), .abandoned(.unjudged),
            .given(.nothing), .given(.unjudged):
            false
        }
    }

    /// Whether a request that has reached a server may be sent once more.
    ///
    /// One whose assertion was used only when its method is safe: the server may have executed it
    /// before its connection broke, and an assertion stands for one execution.
    func mayRepeat(_ leg: Leg) -> Bool {
        let isHarmless = judgement.isProven ? facts.method.isSafe : facts.method.isIdempotent
        let isAllowed = isReused(leg) || leg.attempt.number < leg.retriesMax
        return isHarmless && isAllowed && hasAll(leg)
    }

    private mutating func retry(_ leg: Leg, _ why: Retry) -> Action {
        let content: Content
        switch leg.upload {
        case .streaming, .abandoned: content = .unread
        case .replaying(_, let replayed): content = replayed
        case .given(.all(let given)): content = given
        case .given(.nothing), .given(.unjudged): impossible("retry")
        }
        let attempt = Attempt.again(leg.attempt.number + 1)
        state = .connecting(Approach(content: content, attempt: attempt, told: leg.told))
        return .retry(why, leg.release(.drops), attempt)
    }
}
