package import HTTPWire
package import Rules
import Verification

// From the head to its rule or service.
extension RequestFlow {
    /// The head was found, and can be read.
    package mutating func headRead() -> Action {
        switch state {
        case .arriving: return .countRequest
        case .locating, .calling, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("headRead")
        }
    }

    /// The head can't be read. Its framing is not to be trusted: the connection ends.
    package mutating func headMalformed(_ reason: Malformed.Reason) -> Action {
        switch state {
        case .arriving: return answerLast(.malformed(reason), .none)
        case .locating, .calling, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("headMalformed")
        }
    }

    /// The address has room for the request.
    package mutating func requestCounted() -> Action {
        switch state {
        case .arriving:
            state = .locating
            return .locate
        case .locating, .calling, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("requestCounted")
        }
    }

    /// The address is over its limit of requests or of calls.
    package mutating func addressThrottled() -> Action {
        switch state {
        case .arriving, .calling: return answer(.declined(.addressThrottled))
        case .locating, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("addressThrottled")
        }
    }

    /// It is known who is asked.
    package mutating func located(_ destination: Destination) -> Action {
        switch state {
        case .locating: break
        case .arriving, .calling, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("located")
        }
        switch destination {
        case .loop: return answer(.loopDetected)
        case .lastHop: return answer(.lastHop)
        case .origin:
            state = .routing
            return .findRule
        case .decision:
            precondition(!facts.hasContent, "RequestFlow: a question for a decision has no content")
            purpose = .decision
            state = .routing
            return .findRule
        case .service(let demands):
            guard demands.isCharged else { return call(demands) }
            state = .calling(demands)
            return .countCall
        }
    }

    /// A path or method of the gateway's own to which no service answers.
    package mutating func serviceRefused() -> Action {
        switch state {
        case .locating: return answer(.service)
        case .arriving, .calling, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("serviceRefused")
        }
    }

    /// The address has room for the call.
    package mutating func callCounted() -> Action {
        switch state {
        case .calling(let demands): return call(demands)
        case .arriving, .locating, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("callCounted")
        }
    }

    /// Judges a call that needs it, collects its content, within the service's limit, or asks the
    /// service at once.
    private mutating func call(_ demands: ServiceDemands) -> Action {
        if let judged = demands.rule {
            precondition(!facts.hasContent, "RequestFlow: a call that is judged has no content")
            rule = judged
            return take(up: .withHead)
        }
        if case .length(let length) = facts.framing, length > demands.contentMax {
            return answer(.declined(.contentTooLarge))
        }
        guard facts.hasContent else {
            state = .serving
            return .serve
        }
        state = .collecting(demands)
        return .collect
    }

    /// The rule was found.
    ///
    /// - whole: how much content there is, where all of it came with the head and its length was
    ///   known.
    package mutating func routed(to found: Rule, whole: UInt64?) -> Action {
        switch state {
        case .routing: break
        case .arriving, .locating, .calling, .collecting, .serving, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("routed")
        }
        rule = found
        guard facts.hasContent else { return take(up: .withHead) }
        guard let whole, let taking = taking(whole) else { return take(up: .unread) }
        switch taking {
        case .behindHead: state = .taking(.withHead)
        case .held: state = .taking(.held)
        }
        return .takeContent(taking)
    }

    /// The rule was found, and the request can't be forwarded: its path can be read in several
    /// ways, or it names a field that the rule signs or reads among those that end here.
    package mutating func unroutable(_ found: Rule, _ reason: Malformed.Reason) -> Action {
        switch state {
        case .routing:
            rule = found
            // The connection is the asking proxy's, and carries the questions of others.
            if case .decision = purpose { return answer(.malformed(reason)) }
            return answerLast(.malformed(reason), .none)
        case .arriving, .locating, .calling, .collecting, .serving, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("unroutable")
        }
    }

    /// Content that came whole with the head was taken off the client's stream.
    package mutating func contentTaken(_ count: UInt64) -> Action {
        switch state {
        case .taking(let content):
            contentBytes = count
            return take(up: content)
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("contentTaken")
        }
    }

    /// Content that came whole with its head is judged where it is, and goes to the origin together
    /// with the head.
    private func taking(_ whole: UInt64) -> Taking? {
        if let limit = rule.body.limit, whole > UInt64(limit.rawValue) { return nil }
        if whole <= Self.behindHeadMax { return .behindHead(whole) }
        if case .held = rule.body { return .held(whole) }
        return nil
    }

    /// Judges, forwards or denies, as the rule's mode says.
    private mutating func take(up content: Content) -> Action {
        switch rule.mode {
        case .off:
            if case .decision = purpose { return answer(.allowed) }
            state = .connecting(Approach(content: content, attempt: .first, told: .anything))
            return .admitUnjudged
        case .deny:
            state = .judging(content)
            return decide(Ruling(.refuse(.noRule)), .enforced, content)
        case .observe, .enforce:
            state = .judging(content)
            return .judgeHead
        }
    }
}
