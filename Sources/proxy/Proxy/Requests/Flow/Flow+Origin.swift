import HTTPWire
import Verification

// The origin's leg: servers, attempts, and the request on its way to one of them.
extension Flow {
    /// A server takes the request.
    ///
    /// - retriesMax: how often the origin lets a request be sent once more.
    /// - inMemory: how many bytes of content that is held can go out with the head.
    mutating func connected(
        _ via: Via,
        inMemory: UInt64,
        clientSent: Arrival,
        retriesMax: Int
    ) -> Action {
        guard case .connecting(let approach) = state else { impossible("connected") }
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
    }

    /// How much of the content is with the client's stream already, as far as its length is known.
    enum Arrival: Equatable, Sendable { case partial, whole }

    /// No server took a connection.
    mutating func connectFailed(_ fault: ConnectFault) -> Action {
        guard case .connecting = state else { impossible("connectFailed") }
        switch fault {
        case .refused: return answer(.failed(.unreachable))
        case .timedOut: return answer(.failed(.connectTimeout))
        case .noneUp: return answer(.failed(.noneUp))
        case .queueFull: return answer(.failed(.queueFull))
        case .queueTimeout: return answer(.failed(.queueTimeout))
        case .handshake: return answer(.failed(.handshakeFailed))
        case .shortage: return answer(.failed(.outOfDescriptors))
        }
    }

    /// The head was handed to the server's connection.
    mutating func headSent() -> Action {
        guard case .sending(let leg) = state else { impossible("headSent") }
        switch leg.upload {
        case .given: return .awaitResponse(leg.output, .keep)
        case .streaming: return .stream
        case .replaying(let offset, _): return replay(from: offset, leg)
        case .abandoned: impossible("headSent")
        }
    }

    /// A piece of content that is held was handed to the server's connection.
    mutating func heldSent(_ count: Int) -> Action {
        guard var leg, case .replaying(let offset, let content) = leg.upload else {
            impossible("heldSent")
        }
        let next = offset &+ UInt64(count)
        leg.upload = .replaying(offset: next, content)
        keep(leg)
        return replay(from: next, leg)
    }

    /// The server has not taken all that was handed over. `originDrained` follows when it has.
    mutating func originQueued() {
        guard var leg else { impossible("originQueued") }
        leg.output = .queued
        keep(leg)
    }

    /// The server has taken all that was handed over.
    mutating func originDrained() -> Action {
        // Late: the connection is not the request's any more.
        guard var leg else { return .none }
        leg.output = .clear
        keep(leg)
        switch leg.upload {
        case .streaming: return .readContent
        case .replaying(let offset, _): return replay(from: offset, leg)
        case .given: return isOut(.clear, .keep)
        case .abandoned: return .none
        }
    }

    /// The server's connection was given all of the request.
    func isOut(_ output: Output, _ held: HeldContent) -> Action {
        hasResponse ? .endRequest(output, held) : .awaitResponse(output, held)
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
            return isOut(leg.output, held)
        case .streaming, .given, .abandoned: impossible("replay")
        }
    }
}

// Failures of the server.
extension Flow {
    /// What a connection has brought before it broke.
    enum Heard: Equatable, Sendable {
        case nothing
        /// The beginning of a response, or an interim one.
        case something
    }

    /// Whether another retry would be too many for the origin now.
    enum RetryBudget: Equatable, Sendable { case left, spent }

    /// Bytes could not be sent.
    ///
    /// - isUntouched: whether the server has taken no byte of the request.
    mutating func writeFailed(isUntouched: Bool) -> Action {
        if isOver { return .none }  // Late: the response has ended meanwhile.
        guard var leg else { impossible("writeFailed") }
        if !hasResponse, isUntouched, isReused(leg), hasAll(leg) {
            // Not one byte of the request was taken: any method may be sent again.
            return retry(leg, .unsent)
        }
        if case .streaming(let trace) = leg.upload { leg.upload = .abandoned(trace) }
        keep(leg)
        return .readLastWords
    }

    /// What the server said before its connection broke was read.
    mutating func lastWordsRead(_ heard: Heard, _ budget: RetryBudget) -> Action {
        // A response is under way, or has ended the request.
        if isOver || hasResponse { return .none }
        return originBroke(heard, budget)
    }

    /// The connection to the server has ended or broken before its response was complete.
    mutating func originBroke(_ heard: Heard, _ budget: RetryBudget) -> Action {
        if isOver { return .none }  // Late.
        // RFC 9112 §8: a short response must not look like a whole one.
        if hasResponse { return abandon(.failed(.closed)) }
        guard let leg else { impossible("originBroke") }
        // The request may be sent once more if that does no harm and all of it is still here
        // (RFC 9112 §9.3.1, RFC 9110 §9.2.2); the verdict stays as it is. An idle connection may be
        // closed by the origin in the moment it is taken: that one is always allowed.
        guard case .nothing = heard, mayRepeat(leg), isReused(leg) || budget == .left else {
            return abandon(.failed(.closed))
        }
        return retry(leg, .broken)
    }

    /// The time of the connection to the server has passed.
    ///
    /// - client: whether the client takes what is sent to it.
    /// - heard: what came before; - budget: whether the origin has retries left.
    mutating func originTimedOut(
        client: Output,
        _ heard: Heard,
        _ budget: RetryBudget
    ) -> Action {
        if isOver { return .none }  // Late.
        guard let leg else { impossible("originTimedOut") }
        if hasResponse {
            // The client is what stands still; its own deadline is running.
            if case .queued = client { return .awaitOrigin }
            return abandon(.failed(.timeout))
        }
        // Every retry costs the client as long again, so the reused connection is no excuse.
        guard case .nothing = heard, budget == .left, mayRepeat(leg),
            leg.attempt.number < leg.retriesMax
        else { return abandon(.failed(.timeout)) }
        return retry(leg, .timedOut)
    }

    /// Content that is held can't be read.
    mutating func heldUnreadable() -> Action {
        guard leg != nil else { impossible("heldUnreadable") }
        return abandon(.declined(.spillFailed))
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

/// One request on one connection to a server.
struct Leg: Equatable {
    var upload: Upload
    /// Whether something waits to be taken by the server.
    var output = Output.clear
    let via: Via
    let attempt: Attempt
    /// How often the origin lets a request be sent once more.
    let retriesMax: Int
    let told: Told

    /// Whether the server's connection was given all of the request, and nothing waits.
    var isSent: Bool {
        if case .given = upload, case .clear = output { true } else { false }
    }

    /// The server stops the client: nothing is read while something waits to be sent.
    var takesContent: Bool {
        if case .streaming = upload, case .clear = output { true } else { false }
    }

    var delivery: Delivery { isSent ? .whole : .cutShort(told) }

    /// What becomes of the connection when the request leaves it.
    ///
    /// RFC 9112 §8: an incomplete request must not look complete. Some servers run the application
    /// on what came before an orderly end; none does after a reset.
    func release(_ reuse: OriginReuse) -> Release {
        guard isSent else { return .reset }
        return switch reuse {
        case .keeps: .pool
        case .drops: .close
        }
    }
}

/// Whether a connection has carried a request before.
enum Via: Equatable, Sendable {
    case fresh
    case reused
}

/// Whether bytes wait in memory until the other side takes them.
enum Output: Equatable, Sendable {
    case clear
    case queued
}

/// What an origin was given of a request.
enum Delivery: Equatable, Sendable {
    /// Nothing, or nothing that counts: what a first attempt sent is forgotten with it.
    case nothing
    case whole
    /// The head and not all of the content; the connection was reset.
    case cutShort(Told)
}

/// What becomes of the connection to a server.
enum Release: Equatable, Sendable {
    /// There is none.
    case none
    /// It may carry another request.
    case pool
    case close
    /// The server must not take what it got for a whole request.
    case reset
}

/// How a server is found for a request.
struct Approach: Equatable {
    let content: Content
    let attempt: Attempt
    /// What the origin is told of the verdict.
    let told: Told
}

/// Which attempt it is to give a server the request.
enum Attempt: Equatable, Sendable {
    /// The first: a connection from the pool will do.
    case first
    /// A further one, from 1 on, on a new connection: others of the pool may be as old as the one
    /// that failed.
    case again(Int)

    /// How many came before it.
    var number: Int {
        switch self {
        case .first: 0
        case .again(let number): number
        }
    }
}

/// What the origin was told of the verdict.
enum Told: Equatable, Sendable {
    case pass
    case anything
}

/// Why no server took a connection.
enum ConnectFault: Equatable, Sendable {
    /// They refused it, or can't be reached; or there is none.
    case refused
    /// The last one did not answer in time.
    case timedOut
    /// None is up, and none was asked.
    case noneUp
    /// All have as many connections as they may, and so many requests wait already.
    case queueFull
    /// None had a place for a connection in time.
    case queueTimeout
    /// The last one took the connection, and the TLS handshake failed.
    case handshake
    /// The gateway has no descriptor or memory for it: its own trouble, and no server's.
    case shortage
}
