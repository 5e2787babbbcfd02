import HTTPWire

// The origin's leg: servers, attempts, and the request on its way to one of them.
extension RequestFlow {
    /// A server takes the request.
    ///
    /// - retriesMax: how often the origin lets a request be sent once more.
    /// - inMemory: how many bytes of content that is held can go out with the head.
    package mutating func connected(
        _ via: Via,
        inMemory: UInt64,
        clientSent: Arrival,
        retriesMax: Int
    ) -> Action {
        switch state {
        case .connecting(let approach):
            let content = approach.content
            let upload: Upload
            var ending = ConnectionEnd.byReset
            var first: UInt64 = 0
            switch content {
            case .withHead:
                upload = .given(.all(content))
                ending = .inOrder
            case .unread:
                upload = .streaming(.nothing)
                if case .whole = clientSent { ending = .inOrder }
            case .held:
                first = min(inMemory, contentBytes)
                upload = .replaying(offset: first, content)
                if first == contentBytes { ending = .inOrder }
            case .released:
                // Chunks are framed one by one, and behind the head.
                if case .length = facts.framing { first = min(inMemory, contentBytes) }
                upload = .replaying(offset: first, content)
            }
            state = .sending(
                Leg(
                    upload: upload,
                    via: via,
                    attempt: approach.attempt,
                    retriesMax: retriesMax,
                    told: approach.told
                )
            )
            return .sendHead(heldBytes: first, ending)
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .sending, .responding, .skipping, .over:
            impossible("connected")
        }
    }

    /// How much of the content is with the client's stream already, as far as its length is known.
    package enum Arrival: Equatable, Sendable { case partial, whole }

    /// No server took a connection.
    package mutating func connectFailed(_ fault: ConnectFault) -> Action {
        switch state {
        case .connecting:
            switch fault {
            case .refused: return answer(.failed(.unreachable))
            case .timedOut: return answer(.failed(.connectTimeout))
            case .noneUp: return answer(.failed(.noneUp))
            case .queueFull: return answer(.failed(.queueFull))
            case .queueTimeout: return answer(.failed(.queueTimeout))
            case .handshake: return answer(.failed(.handshakeFailed))
            case .shortage: return answer(.failed(.outOfDescriptors))
            }
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .sending, .responding, .skipping, .over:
            impossible("connectFailed")
        }
    }

    /// The head was handed to the server's connection.
    package mutating func headSent() -> Action {
        switch state {
        case .sending(let leg):
            switch leg.upload {
            case .given: return .awaitResponse(leg.output, .keep)
            case .streaming: return .stream
            case .replaying(let offset, _): return replay(from: offset, leg)
            case .abandoned: impossible("headSent")
            }
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .responding, .skipping, .over:
            impossible("headSent")
        }
    }

    /// A piece of content that is held was handed to the server's connection.
    package mutating func heldSent(_ count: Int) -> Action {
        switch state {
        case .sending(var leg):
            guard case .replaying(let offset, let content) = leg.upload else {
                impossible("heldSent")
            }
            let next = offset &+ UInt64(count)
            leg.upload = .replaying(offset: next, content)
            state = .sending(leg)
            return replay(from: next, leg)
        case .responding(var leg, let response):
            guard case .replaying(let offset, let content) = leg.upload else {
                impossible("heldSent")
            }
            let next = offset &+ UInt64(count)
            leg.upload = .replaying(offset: next, content)
            state = .responding(leg, response)
            return replay(from: next, leg)
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .skipping, .over:
            impossible("heldSent")
        }
    }

    /// The server has not taken all that was handed over. `originDrained` follows when it has.
    package mutating func originQueued() {
        switch state {
        case .sending(var leg):
            leg.output = .queued
            state = .sending(leg)
        case .responding(var leg, let response):
            leg.output = .queued
            state = .responding(leg, response)
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .skipping, .over:
            impossible("originQueued")
        }
    }

    /// The server has taken all that was handed over.
    package mutating func originDrained() -> Action {
        switch state {
        case .sending(var leg):
            leg.output = .clear
            state = .sending(leg)
            switch leg.upload {
            case .streaming: return .readContent
            case .replaying(let offset, _): return replay(from: offset, leg)
            case .given: return .awaitResponse(.clear, .keep)
            case .abandoned: return .none
            }
        case .responding(var leg, let response):
            leg.output = .clear
            state = .responding(leg, response)
            switch leg.upload {
            case .streaming: return .readContent
            case .replaying(let offset, _): return replay(from: offset, leg)
            case .given: return .endRequest(.clear, .keep)
            case .abandoned: return .none
            }
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .skipping, .over:
            return .none  // Late: the connection is not the request's any more.
        }
    }

    /// Sends the next of what is held, when the server takes it.
    private mutating func replay(from offset: UInt64, _ leg: Leg) -> Action {
        if case .queued = leg.output { return .none }
        guard offset >= contentBytes else { return .sendHeld(from: offset) }
        var leg = leg
        switch leg.upload {
        case .replaying(_, .released(.nothing)): return .endHeld
        case .replaying(_, .released(.more)):
            leg.upload = .streaming(.unjudged)
            keep(leg)
            return .streamOn
        case .replaying(_, let content):
            // Kept only as long as the request may have to be sent once more.
            let isKept = !hasResponse && mayRepeat(leg)
            leg.upload = .given(isKept ? .all(content) : .nothing)
            keep(leg)
            let held: HeldContent = isKept ? .keep : .drop
            return hasResponse ? .endRequest(leg.output, held) : .awaitResponse(leg.output, held)
        case .streaming, .given, .abandoned: impossible("replay")
        }
    }

    private mutating func keep(_ leg: Leg) {
        if case .responding(_, let response) = state {
            state = .responding(leg, response)
        } else {
            state = .sending(leg)
        }
    }
}
