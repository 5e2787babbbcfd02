import Verification

// The ends of a request.
extension RequestFlow {
    /// The service has its answer.
    package mutating func served() -> Action {
        switch state {
        case .serving: return answer(.service)
        case .over: return .none  // Late: the client has gone, or the time was over.
        case .arriving, .locating, .calling, .collecting, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping:
            impossible("served")
        }
    }

    /// What the service stores is not stored in time.
    package mutating func storingTimedOut() -> Action {
        switch state {
        case .serving: return answer(.declined(.storeUnavailable))
        case .over: return .none  // Late: the client has gone, or the answer came.
        case .arriving, .locating, .calling, .collecting, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping:
            impossible("storingTimedOut")
        }
    }

    /// Content that was not read is dropped, if all of it was here.
    package mutating func contentSkipped(isWhole: Bool) -> Action {
        switch state {
        case .skipping(let reply):
            state = .over(.nothing)
            return .answer(reply, .none, isWhole ? .goesOn : .lingers)
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .over:
            impossible("contentSkipped")
        }
    }

    /// The client is gone in both directions, and nobody has read that.
    ///
    /// What was verified whole arrives whole: nobody chooses where it ends by going away. That the
    /// client is gone shows again when something is sent to it.
    ///
    /// - Returns: whether the client's stream is to be closed.
    package func clientBroke() -> Bool {
        switch state {
        case .connecting(let approach): approach.content != .held
        case .sending(let leg):
            switch leg.upload {
            case .replaying(_, .held): false
            case .given(.all), .given(.nothing): leg.output == .clear
            case .given(.unjudged), .replaying, .streaming, .abandoned: true
            }
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .responding, .skipping, .over:
            true
        }
    }

    /// The client's stream was closed before the response was complete.
    package mutating func clientClosed() -> Action {
        switch state {
        case .over: return .none  // Late: the request has ended by itself.
        case .connecting:
            state = .over(.nothing)
            return .end(.close)
        case .sending(let leg), .responding(let leg, _):
            state = .over(leg.delivery)
            return .end(leg.release(.drops))
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .skipping:
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
        case .arriving, .locating, .calling, .routing:
            content = facts.hasContent ? .unread : .withHead
        case .taking(let taken), .judging(let taken), .awaitingCommit(let taken),
            .awaitingDevice(let taken):
            content = taken
        case .connecting(let approach): content = approach.content
        case .serving: content = .withHead
        case .sending(let leg):
            release = leg.release(.drops)
            guard case .given = leg.upload else { return answerLast(reply, release) }
            content = .withHead
        case .collecting, .holding: return answerLast(reply, .none)
        case .responding, .skipping, .over: impossible("answer")
        }
        switch content {
        case .withHead, .held:
            state = .over(delivery)
            return .answer(reply, release, .goesOn)
        case .unread:
            state = .skipping(reply)
            return .skipContent
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
