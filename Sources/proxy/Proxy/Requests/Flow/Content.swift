import HTTPWire
import Rules
import Verification

/// The place of a request's content before a server gets it.
enum Content: Equatable {
    /// There is none, or it is sent together with the head.
    case withHead
    /// The client has it. It is read when a server takes it.
    case unread
    /// Here: all of it, and it was judged.
    case held
    /// Here: the part that came before it was released unjudged. The rest may still come.
    case released(Rest)

    /// The most content that goes to the origin in one piece with the head, in bytes.
    static let behindHeadMax: UInt64 = 1024

    /// The rest after released content.
    enum Rest: Equatable {
        case nothing
        case more
    }

    /// Whether the client has sent all of it, and the verdict covered all of it.
    var isHere: Bool {
        switch self {
        case .withHead, .held: true
        case .unread, .released: false
        }
    }

    /// The place of content that came whole with its head and must be judged. Small content stays
    /// where it is and goes to the origin together with the head; other content is held or stays
    /// with the client.
    static func place(ofWhole count: UInt64, by rule: Rule) -> Content {
        if let limit = rule.body.limit, count > UInt64(limit.rawValue) { return .unread }
        if count <= behindHeadMax { return .withHead }
        if case .held = rule.body { return .held }
        return .unread
    }
}

/// The request's content on its way to a server.
enum Upload: Equatable {
    /// The client's content is forwarded as it comes. Leaves to `given`, `abandoned`.
    case streaming(Trace)
    /// Content that is here is sent, from an offset. Leaves to `given`, `streaming`.
    case replaying(offset: UInt64, Content)
    /// The server's connection was given all of it.
    case given(Remains)
    /// The server does not take the rest; a response is still possible, or relayed.
    case abandoned(Trace)

    /// What was read of streamed content.
    enum Trace: Equatable {
        /// Nothing: the whole request can still go to another server.
        case nothing
        /// Bytes that are no longer here.
        case some
        /// Bytes without a verdict that are no longer here.
        case unjudged
    }

    /// What is still here of content that the server was given.
    enum Remains: Equatable {
        /// All that a second attempt may need: it is held, or went with the head.
        case all(Content)
        case nothing
        /// Nothing, and it had no verdict.
        case unjudged
    }
}

/// The part of a request that an origin got.
enum Delivery: Equatable, Sendable {
    /// Nothing, or nothing that counts: the bytes of a failed first attempt don't count.
    case nothing
    case whole
    /// The head and not all of the content; the connection was reset.
    case cutShort(Told)
}

/// The search for a server for a request.
struct Approach: Equatable {
    let content: Content
    let attempt: Attempt
    /// The verdict as the origin gets it.
    let told: Told
}

/// The number of the attempt to give a server the request.
enum Attempt: Equatable, Sendable {
    /// The first: a connection from the pool may be used.
    case first
    /// A further one, from 1 on, on a new connection: other connections of the pool may be as old
    /// as the one that failed.
    case again(Int)

    /// The number of earlier attempts.
    var number: Int {
        switch self {
        case .first: 0
        case .again(let number): number
        }
    }
}

/// The verdict as the origin got it.
enum Told: Equatable, Sendable {
    case pass
    case anything
}

extension Flow {
    /// The part of streamed content that is sent.
    enum Piece: Equatable, Sendable { case more, last }

    /// What happens to a piece of content.
    enum Take: Equatable, Sendable {
        /// It is collected for a service.
        case collect
        /// It is held. Then possibly `holdFailed`.
        case hold
        /// It follows the held content and is not held itself.
        case append
        /// It is hashed where the head states a digest.
        case skim
        /// It goes to the server.
        case send
        /// It goes to the server and is hashed.
        case sendHashed
        /// It is hashed, compared with the digest that the head states, and the key is looked up
        /// again. Then `endJudged`.
        case judgeEnd
        /// It is dropped, and so are later pieces.
        case stop(Action)
    }
}

// The request's content on its way from the client.
extension Flow {
    func contentReady() -> Action { takesContent ? .readContent : .none }

    /// A piece of content has come.
    ///
    /// - isLast: whether it is known to be the last. After the last chunk that is not known before
    ///   ``contentRead(isLast:)``.
    mutating func contentReceived(_ count: Int, isLast: Bool) -> Take {
        contentBytes &+= UInt64(count)
        switch state {
        case .collecting(let contentMax):
            guard contentBytes <= contentMax else {
                return .stop(answer(.declined(.contentTooLarge)))
            }
            return .collect
        case .holding(let holding):
            guard isOverLimit else { return holding == .held ? .hold : .append }
            return holdLess(.contentTooLarge)
        case .skimming: return skim()
        case .forwarding: return receive(isLast)
        case .over: return .stop(.none)  // Late: an earlier piece has ended the request.
        case .serving, .judging, .awaitingKey, .awaitingCommit, .awaitingAnswer, .connecting:
            impossible("contentReceived")
        }
    }

    /// A piece of content that the proxy which asks will forward itself.
    private mutating func skim() -> Take {
        guard isOverLimit, verdictState.refusal != .contentTooLarge else { return .skim }
        guard verdictState.change(to: .refuse(.contentTooLarge)) == .observed else {
            return .stop(abandon(.refused(.contentTooLarge)))
        }
        return .skim
    }

    /// A piece of content for the server.
    private mutating func receive(_ isLast: Bool) -> Take {
        // Late: a write has failed first.
        guard streams() else { return .stop(.none) }
        // The last piece is sent only after the end is judged.
        let take: Take =
            isLast && verdictState.withholdsEnd
            ? .judgeEnd : verdictState.expectsDigest ? .sendHashed : .send
        // The origin was told of an earlier refusal: log and report have the same one.
        guard isOverLimit, verdictState.refusal == nil else { return take }
        guard verdictState.change(to: .refuse(.contentTooLarge)) == .observed else {
            return .stop(abandon(.refused(.contentTooLarge)))
        }
        return take
    }

    /// Streamed content is about to be sent; `false` where the server takes no more.
    private mutating func streams() -> Bool {
        guard case .forwarding(var leg) = state else {
            impossible("content streams without a server")
        }
        let takes = leg.streams()
        state = .forwarding(leg)
        return takes
    }

    /// A piece can't be held.
    mutating func holdFailed(_ refusal: Refusal) -> Take {
        guard case .holding = state else { impossible("holdFailed") }
        return holdLess(refusal)
    }

    /// All bytes that were read have been taken.
    ///
    /// - isLast: whether the content is complete.
    mutating func contentRead(isLast: Bool) -> Action {
        switch state {
        case .collecting:
            guard isLast else { return .none }
            state = .serving
            return .serve
        case .skimming:
            guard isLast else { return .none }
            state = .skimming(.nothing)
            guard isWhole || !verdictState.expectsDigest else {
                return skimmed(.refuse(.contentUnseen))
            }
            return verdictState.withholdsEnd ? .judgeEnd : answer(.allowed)
        case .holding(.released) where isAsked:
            state = .skimming(.more)
            return isLast ? contentRead(isLast: true) : .skim
        case .holding(.released):
            let content = Content.released(isLast ? .nothing : .more)
            connect(content)
            return .release
        case .holding:
            guard isLast else { return .none }
            guard isWhole else {
                state = .skimming(.nothing)
                return skimmed(.refuse(.contentUnseen))
            }
            let content: Content = contentBytes > 0 ? .held : .withHead
            state = .judging(content)
            return .judgeContent
        case .forwarding: return pass(isLast)
        case .over: return .none  // Late: a piece has ended the request.
        case .serving, .judging, .awaitingKey, .awaitingCommit, .awaitingAnswer, .connecting:
            impossible("contentRead")
        }
    }

    /// The content's framing is broken.
    mutating func contentMalformed(_ reason: Malformed.Reason) -> Action {
        if isOver { return .none }  // Late: a piece has ended the request.
        guard leg != nil || takesContent else { impossible("contentMalformed") }
        return abandon(.malformed(reason))
    }

    /// The client did not send content in time, or too little.
    mutating func contentTimedOut() -> Action {
        // Late: the client need not send anything any more.
        guard awaitsContent else { return .none }
        // The server does not take the bytes; its own deadline is running.
        if case .queued? = leg?.output { return .awaitContent }
        return abandon(.contentTimeout)
    }

    /// The content was compared with the digest that the head states, and the key that has signed
    /// was looked up again. The content's last bytes, or at least its end, have waited for that.
    ///
    /// - fault: the new verdict; `nil` where it stays.
    /// - Returns: whether the bytes are sent or dropped.
    mutating func endJudged(_ fault: Verdict.Outcome?) -> Take {
        if case .skimming = state { return .stop(skimmed(fault)) }
        guard leg != nil else { impossible("endJudged") }
        let refusal: Refusal
        let enforcement = verdictState.endJudged(fault)
        switch fault {
        case .none, .pass: return .send
        case .refuse(let found): refusal = found
        case .failure(let dependency): refusal = dependency.refusal
        }
        return enforcement == .observed ? .send : .stop(abandon(.refused(refusal)))
    }

    /// The content that a proxy asks about has come. If there is a fault, it becomes the verdict.
    private mutating func skimmed(_ fault: Verdict.Outcome?) -> Action {
        let enforcement = verdictState.endJudged(fault)
        switch fault {
        case .refuse(let refusal) where enforcement == .enforced: return answer(.refused(refusal))
        case .failure(let dependency) where enforcement == .enforced:
            return answer(.refused(dependency.refusal))
        case .none, .pass, .refuse, .failure: return answer(.allowed)
        }
    }

    /// Forwards the bytes that were read; the last of them only when the end is judged.
    private mutating func pass(_ isLast: Bool) -> Action {
        // Late: a write has failed first.
        guard streams() else { return .none }
        guard isLast else { return .sendContent(.more) }
        return verdictState.withholdsEnd ? .judgeEnd : .sendContent(.last)
    }

    /// Content can't be held until it is judged. The request is refused, or where the client is
    /// only observed, the held content is forwarded unjudged.
    private mutating func holdLess(_ refusal: Refusal) -> Take {
        if case .holding(.released) = state { return .append }
        guard verdictState.change(to: .refuse(refusal)) == .observed else {
            return .stop(abandon(.refused(refusal)))
        }
        state = .holding(.released(.more))
        return .append
    }

    /// Whether a proxy asks about the request.
    private var isAsked: Bool {
        if case .decision = purpose { true } else { false }
    }

    /// Whether content that has ended has the number of bytes that a proxy has stated for it.
    private var isWhole: Bool {
        guard case .decision(_, .counted(let count)) = purpose else { return true }
        return contentBytes == count
    }

    private var isOverLimit: Bool {
        guard let limit = rule.body.limit else { return false }
        return contentBytes > UInt64(limit.rawValue)
    }
}
