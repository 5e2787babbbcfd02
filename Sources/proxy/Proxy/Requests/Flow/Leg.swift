import HTTPWire
import Services

/// One request on one connection to a server, as a machine that ``Flow`` holds.
///
/// It knows which part of the request the server got, which part is still here, and whether the
/// response has begun. Each event returns a step: an action of the driver, a failure of the server,
/// or a retry of the request.
struct Leg: Equatable {
    /// The progress with the server.
    enum Phase: Equatable {
        /// The server is given the request. Leaves to `connecting`, `responding`, `over`.
        case sending
        /// The response goes to the client, and possibly the rest of the request to the server.
        /// Leaves to `over`.
        case responding(Response)
    }

    /// The step after an event.
    enum Step: Equatable {
        case does(Flow.Action)
        case fails(OriginFailure)
        /// The request goes to another connection, with its content as before.
        case retries(Retry, Content)
    }

    private(set) var phase = Phase.sending
    private(set) var upload: Upload
    /// Whether bytes wait until the server takes them.
    private(set) var output = Output.clear
    let attempt: Attempt
    let told: Told
    private let isReused: Bool
    private let repetition: Repetition
    /// Bytes of held content.
    private let heldBytes: UInt64

    /// Whether and how often the request may go to a server again.
    struct Repetition: Equatable {
        /// Whether a server that got the request may get it again: the repetition does no harm.
        let isHarmless: Bool
        /// The most retries that the origin allows.
        let retriesMax: Int
        /// Whether the server may say that it has not processed the request.
        let mayRefuse: Bool
    }

    /// - inMemory: the number of held bytes that can be sent with the head.
    init(
        _ approach: Approach,
        via: Via,
        _ framing: BodyFraming,
        held: (bytes: UInt64, inMemory: UInt64),
        repetition: Repetition
    ) {
        attempt = approach.attempt
        told = approach.told
        isReused = via == .reused && approach.attempt == .first
        self.repetition = repetition
        heldBytes = held.bytes
        let inMemory = held.inMemory
        let content = approach.content
        switch content {
        case .withHead: upload = .given(.all(content))
        case .unread: upload = .streaming(.nothing)
        case .held: upload = .replaying(offset: min(inMemory, heldBytes), content)
        case .released:
            // Chunks are framed one by one, and after the head.
            let goesWithHead = if case .length = framing { true } else { false }
            upload = .replaying(offset: goesWithHead ? min(inMemory, heldBytes) : 0, content)
        }
    }

    /// Sends the head, with the part of the content that is sent together with it.
    func sendHead(_ clientSent: Arrival) -> Flow.Action {
        switch upload {
        case .streaming where clientSent == .partial: .sendHead(heldBytes: 0, .byReset)
        case .given, .streaming, .abandoned: .sendHead(heldBytes: 0, .inOrder)
        case .replaying(let first, let content):
            .sendHead(
                heldBytes: first,
                content == .held && first == heldBytes ? .inOrder : .byReset
            )
        }
    }
}

// State for other types.
extension Leg {
    var hasResponse: Bool { if case .responding = phase { true } else { false } }

    /// Whether the client gets the trailers of the response.
    var passesTrailers: Bool {
        if case .responding(let response) = phase { response.trailers == .pass } else { false }
    }

    /// Whether the server's connection was given all of the request.
    var isGiven: Bool { if case .given = upload { true } else { false } }

    /// Whether content is forwarded as it comes.
    var isStreaming: Bool { if case .streaming = upload { true } else { false } }

    /// Whether the server's connection was given the whole request, and no byte waits.
    var isSent: Bool { isGiven && output == .clear }

    /// Whether content is read from the client. It is not while bytes wait to be sent to the
    /// server.
    var takesContent: Bool { isStreaming && output == .clear }

    /// The part of the request that the server got.
    var delivery: Delivery { isSent ? .whole : .cutShort(told) }

    /// Whether the client's stream is closed when the client has closed both directions.
    var endsWithClient: Bool {
        if hasResponse { return true }
        return switch upload {
        case .replaying(_, .held): false
        case .given(.all), .given(.nothing): output == .clear
        case .given(.unjudged), .replaying, .streaming, .abandoned: true
        }
    }

    /// What happens to the connection when the request leaves it.
    ///
    /// RFC 9112 §8: an incomplete request must not look complete. Some servers run the application
    /// on the bytes before an orderly end; none does after a reset.
    func release(_ reuse: OriginReuse = .drops) -> Release {
        guard isSent else { return .reset }
        return switch reuse {
        case .keeps: .pool
        case .drops: .close
        }
    }

    /// Whether the whole request is still here.
    private var hasAll: Bool {
        switch upload {
        case .streaming(.nothing), .abandoned(.nothing), .replaying, .given(.all): true
        case .streaming(.some), .streaming(.unjudged), .abandoned(.some), .abandoned(.unjudged),
            .given(.nothing), .given(.unjudged):
            false
        }
    }

    /// Whether the request may be retried though it has reached a server.
    private var mayRepeat: Bool {
        repetition.isHarmless && hasAll && (isReused || attempt.number < repetition.retriesMax)
    }

    /// Whether a request that the server refuses may go to another connection.
    private var mayGoOn: Bool {
        repetition.mayRefuse && (attempt == .first || attempt.number < repetition.retriesMax)
    }

    private func retries(_ why: Retry) -> Step {
        switch upload {
        case .replaying(_, let content), .given(.all(let content)): .retries(why, content)
        case .streaming, .abandoned, .given(.nothing), .given(.unjudged): .retries(why, .unread)
        }
    }
}

// The request on its way to the server.
extension Leg {
    /// The head was handed to the server's connection.
    mutating func headSent() -> Step {
        switch upload {
        case .given: .does(.awaitResponse(output, .keep))
        case .streaming: .does(.stream)
        case .replaying(let offset, _): replay(from: offset)
        case .abandoned: preconditionFailure("Leg: the head was sent to a server that failed")
        }
    }

    /// A piece of held content was handed to the server's connection.
    mutating func heldSent(_ count: Int) -> Step {
        guard case .replaying(let offset, let content) = upload else {
            preconditionFailure("Leg: content that is held was sent while \(upload)")
        }
        let next = offset &+ UInt64(count)
        upload = .replaying(offset: next, content)
        return replay(from: next)
    }

    /// The server has not taken all bytes. `drained` follows when it has.
    mutating func queued() -> Step {
        output = .queued
        return .does(.none)
    }

    /// The server has taken all bytes.
    mutating func drained() -> Step {
        output = .clear
        switch upload {
        case .streaming: return .does(.readContent)
        case .replaying(let offset, _): return replay(from: offset)
        case .given: return isOut(.keep)
        case .abandoned: return .does(.none)
        }
    }

    /// Streamed content is about to be sent; `false` where the server takes no more.
    mutating func streams() -> Bool {
        switch upload {
        case .streaming(.nothing): upload = .streaming(.some)
        case .streaming(.some), .streaming(.unjudged): break
        case .abandoned: return false
        case .replaying, .given: preconditionFailure("Leg: content streams that is here")
        }
        return true
    }

    /// The last of the content was handed to the server's connection.
    mutating func contentSent() -> Step {
        switch upload {
        case .streaming(.nothing), .streaming(.some): upload = .given(.nothing)
        case .streaming(.unjudged), .replaying(_, .released): upload = .given(.unjudged)
        case .given, .abandoned, .replaying:
            preconditionFailure("Leg: the last content was sent while \(upload)")
        }
        return isOut(.keep)
    }

    /// The server's connection was given all of the request.
    private func isOut(_ held: HeldContent) -> Step {
        .does(hasResponse ? .endRequest(output, held) : .awaitResponse(output, held))
    }

    /// Sends the next held bytes, when the server takes them.
    private mutating func replay(from offset: UInt64) -> Step {
        if case .queued = output { return .does(.none) }
        guard offset >= heldBytes else { return .does(.sendHeld(from: offset)) }
        switch upload {
        case .replaying(_, .released(.nothing)): return .does(.endHeld)
        case .replaying(_, .released(.more)):
            upload = .streaming(.unjudged)
            return .does(.streamOn)
        case .replaying(_, let content):
            // Kept only while the request may have to be retried.
            let isKept = !hasResponse && (mayRepeat || mayGoOn)
            upload = .given(isKept ? .all(content) : .nothing)
            return isOut(isKept ? .keep : .drop)
        case .streaming, .given, .abandoned:
            preconditionFailure("Leg: content is sent again while \(upload)")
        }
    }
}

// Failures of the server.
extension Leg {
    /// Bytes could not be sent.
    ///
    /// - isUntouched: whether the server has taken no byte of the request.
    mutating func writeFailed(isUntouched: Bool) -> Step {
        // The server took no byte of the request: any method may be retried.
        if !hasResponse, isUntouched, isReused, hasAll { return retries(.unsent) }
        if case .streaming(let trace) = upload { upload = .abandoned(trace) }
        return .does(.readLastWords)
    }

    /// The connection ended or broke before the response was complete.
    func broke(_ heard: Heard, _ budget: RetryBudget) -> Step {
        // RFC 9112 §8: an incomplete response must not look like a whole one.
        //
        // The request may be retried if that does no harm and all of it is still here (RFC 9112
        // §9.3.1, RFC 9110 §9.2.2); the verdict stays. The origin may close an idle connection at
        // the moment it is taken: a retry after that needs no budget.
        guard !hasResponse, case .nothing = heard, mayRepeat, isReused || budget == .left else {
            return .fails(.originClosed)
        }
        return retries(.broken)
    }

    /// The server says that it has not processed the request (RFC 9113 §8.7), so any method may be
    /// sent again while all of the request is here: once in any case, as after an idle connection
    /// that has ended, and then as often as the origin allows.
    func refused(_ budget: RetryBudget) -> Step {
        let isAllowed =
            attempt == .first || attempt.number < repetition.retriesMax && budget == .left
        guard !hasResponse, hasAll, isAllowed else { return .fails(.originRefused) }
        return retries(.unsent)
    }

    /// The deadline of the connection has passed.
    ///
    /// - client: whether the client takes the bytes sent to it.
    /// - heard: the bytes received before; - budget: whether the origin has retries left.
    func timedOut(client: Output, _ heard: Heard, _ budget: RetryBudget) -> Step {
        if hasResponse {
            // The client does not take its bytes; its own deadline is running.
            return client == .queued ? .does(.awaitOrigin) : .fails(.originTimeout)
        }
        // Every retry costs the client this time again, so a reused connection is no reason for
        // one.
        guard case .nothing = heard, budget == .left, mayRepeat,
            attempt.number < repetition.retriesMax
        else { return .fails(.originTimeout) }
        return retries(.timedOut)
    }
}

// The response.
extension Leg {
    /// The head of the response has come. Interim responses are forwarded before it.
    mutating func responseBegan(_ kind: ResponseKind, to facts: RequestFacts) -> Step {
        precondition(!hasResponse, "Leg: a second response")
        guard case .final(var reuse, var trailers) = kind else { return .does(.beginTunnel) }
        if facts.asks(.isolation) || facts.asks(.authentication) { reuse = .drops }
        // RFC 9110 §6.5.1: only for clients that accept trailers.
        if !facts.asks(.trailers) { trailers = .end }
        phase = .responding(Response(reuse: reuse, trailers: trailers))
        // The request will not be retried.
        guard case .given(.all) = upload else {
            return .does(.relay(isGiven ? .behindRequest : .early, .keep))
        }
        upload = .given(.nothing)
        return .does(.relay(.behindRequest, .drop))
    }
}

// The values in its events and steps.
extension Leg {
    /// How a connection ends, also if the process ends.
    enum ConnectionEnd: Equatable, Sendable { case inOrder, byReset }

    /// Why a request is retried.
    enum Retry: Equatable, Sendable {
        /// The server took no byte of it.
        case unsent
        /// The connection broke.
        case broken
        /// The response did not begin in time.
        case timedOut
    }

    /// Whether held content is still needed.
    enum HeldContent: Equatable, Sendable { case keep, drop }

    /// Whether the request was complete when its response began.
    enum ResponseStart: Equatable, Sendable {
        case behindRequest
        /// The response does not wait for the rest of the request and is the connection's last.
        case early
    }

    /// How much of the content has reached the client's stream, as far as its length is known.
    enum Arrival: Equatable, Sendable { case partial, whole }

    /// What a connection has received before it broke.
    enum Heard: Equatable, Sendable {
        case nothing
        /// The beginning of a response, or an interim one.
        case something
    }

    /// Whether the origin allows another retry now.
    enum RetryBudget: Equatable, Sendable { case left, spent }
}

/// A response that has begun.
struct Response: Equatable {
    let reuse: OriginReuse
    let trailers: Trailers
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

/// What happens to the connection to a server.
enum Release: Equatable, Sendable {
    case none
    /// It may carry another request.
    case pool
    case close
    /// Closes by a reset, so that the server can't take the incomplete request for a whole one.
    case reset
}
