import HTTPWire
import Rules
import Verification

// The request's content on its way from the client.
extension Flow {
    /// There may be content to read.
    func contentReady() -> Action { takesContent ? .readContent : .none }

    /// A piece of content has come.
    ///
    /// - isLast: whether it is known to be the last. Behind the last chunk that is not known before
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
        case .sending, .responding: return receive(isLast)
        case .over: return .stop(.none)  // Late: a piece before it has ended the request.
        case .serving, .judging, .awaitingCommit, .awaitingDevice, .connecting:
            impossible("contentReceived")
        }
    }

    /// A piece of content for the server.
    private mutating func receive(_ isLast: Bool) -> Take {
        // Late: a write that failed came first.
        guard hasBegunStream() else { return .stop(.none) }
        // The last piece is sent from where it is: not before the end is judged.
        let take: Take = isLast && withholdsEnd ? .judgeEnd : expectsDigest ? .sendHashed : .send
        guard isOverLimit, !isFoundTooLarge else { return take }
        guard case .observed = changeVerdict(to: .contentTooLarge) else {
            return .stop(abandon(.refused(.contentTooLarge)))
        }
        return take
    }

    /// Notes that content which streams has begun to go; `false` where the server takes no more.
    private mutating func hasBegunStream() -> Bool {
        guard var leg else { impossible("content streams without a server") }
        switch leg.upload {
        case .streaming(.nothing):
            leg.upload = .streaming(.some)
            keep(leg)
        case .streaming(.some), .streaming(.unjudged): break
        case .abandoned: return false
        case .replaying, .given: impossible("content streams that is here")
        }
        return true
    }

    /// A piece can't be held.
    mutating func holdFailed(_ refusal: Refusal) -> Take {
        guard case .holding = state else { impossible("holdFailed") }
        return holdLess(refusal)
    }

    /// All that was read has been taken.
    ///
    /// - isLast: whether the content is complete.
    mutating func contentRead(isLast: Bool) -> Action {
        switch state {
        case .collecting:
            guard isLast else { return .none }
            state = .serving
            return .serve
        case .holding(.released):
            let content = Content.released(isLast ? .nothing : .more)
            connect(content)
            return .release
        case .holding:
            guard isLast else { return .none }
            let content: Content = contentBytes > 0 ? .held : .withHead
            state = .judging(content)
            return .judgeContent
        case .sending, .responding: return pass(isLast)
        case .over: return .none  // Late: a piece has ended the request.
        case .serving, .judging, .awaitingCommit, .awaitingDevice, .connecting:
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
        // Late: nothing is awaited of the client any more.
        guard awaitsContent else { return .none }
        // The server is what stands still; its own deadline is running.
        if case .queued? = leg?.output { return .awaitContent }
        return abandon(.contentTimeout)
    }

    /// The content was compared with the digest that the head states, and the key that has signed
    /// was looked up again. The content's last bytes have waited for that, or at least its end.
    ///
    /// - fault: what the verdict becomes; `nil` where it stays.
    /// - Returns: what becomes of them: they are sent, or dropped.
    mutating func endJudged(_ fault: Verdict?) -> Take {
        guard leg != nil else { impossible("endJudged") }
        isEndJudged = true
        let refusal: Refusal
        switch fault {
        case .none, .pass: return .send
        case .refuse(let found): refusal = found
        case .failure(let dependency): refusal = dependency.refusal
        }
        guard case .observed = changeVerdict(to: fault ?? .pass) else {
            return .stop(abandon(.refused(refusal)))
        }
        return .send
    }

    /// The last of the content was handed to the server's connection.
    mutating func contentSent() -> Action {
        if isOver { return .none }  // Late: the response has ended meanwhile.
        guard var leg else { impossible("contentSent") }
        leg.upload = .given(Self.remains(of: leg.upload))
        keep(leg)
        return isOut(leg.output, .keep)
    }

    private static func remains(of upload: Upload) -> Upload.Remains {
        switch upload {
        case .streaming(.nothing), .streaming(.some): .nothing
        case .streaming(.unjudged), .replaying(_, .released): .unjudged
        case .given, .abandoned, .replaying(_, .withHead), .replaying(_, .unread),
            .replaying(_, .held):
            preconditionFailure("Flow: the last content was sent while \(upload)")
        }
    }

    /// Passes on what was read; the last of it only when the end is judged.
    private mutating func pass(_ isLast: Bool) -> Action {
        // Late: the write that failed came first.
        guard hasBegunStream() else { return .none }
        guard isLast else { return .sendContent(.more) }
        return withholdsEnd ? .judgeEnd : .sendContent(.last)
    }

    /// Content can't be held until it is judged: the request is refused, or what is held goes on
    /// unjudged where the client is only observed.
    private mutating func holdLess(_ refusal: Refusal) -> Take {
        if case .holding(.released) = state { return .append }
        guard case .observed = changeVerdict(to: refusal) else {
            return .stop(abandon(.refused(refusal)))
        }
        state = .holding(.released(.more))
        return .append
    }

    private var isOverLimit: Bool {
        guard let limit = rule.body.limit else { return false }
        return contentBytes > UInt64(limit.rawValue)
    }

    private var isFoundTooLarge: Bool {
        guard case .given(let ruling, _) = judgement else { return false }
        return ruling.verdict == .refuse(.contentTooLarge)
    }

    /// Whether the content must still show the digest that the head states.
    private var expectsDigest: Bool {
        guard case .given(let ruling, _) = judgement else { return false }
        return ruling.expectedDigest != nil && !isEndJudged
    }

    /// Whether the end of the content waits: it must have the digest that the head states, and the
    /// key that has signed may be revoked meanwhile.
    private var withholdsEnd: Bool {
        expectsDigest || judgement.admittedKey != nil && !isEndJudged
    }
}

/// Where the content of a request is before a server is given it.
enum Content: Equatable {
    /// There is none, or it goes out together with the head.
    case withHead
    /// With the client. It is read when a server takes it.
    case unread
    /// Here: all of it, and judged.
    case held
    /// Here: what came before it was released unjudged. The rest may still come.
    case released(Rest)

    /// What follows content that was released.
    enum Rest: Equatable {
        case nothing
        case more
    }

    /// Whether the client has sent all of it, and the verdict was about all of it.
    var isHere: Bool {
        switch self {
        case .withHead, .held: true
        case .unread, .released: false
        }
    }
}

/// The request's content on its way to a server.
enum Upload: Equatable {
    /// The client's content goes on as it comes. Leaves to `given`, `abandoned`.
    case streaming(Trace)
    /// Content that is here goes on, from an offset. Leaves to `given`, `streaming`.
    case replaying(offset: UInt64, Content)
    /// The server's connection was given all of it.
    case given(Remains)
    /// The server does not take the rest; a response is still hoped for, or relayed.
    case abandoned(Trace)

    /// What was read of content that is streamed.
    enum Trace: Equatable {
        /// Nothing: all of the request can still go to another server.
        case nothing
        /// Bytes that are gone here.
        case some
        /// Bytes that nobody judged, and that are gone here.
        case unjudged
    }

    /// What is left here of content that the server was given.
    enum Remains: Equatable {
        /// All that can be needed for a second attempt: it is held, or went with the head.
        case all(Content)
        case nothing
        /// Nothing, and nobody judged it.
        case unjudged
    }
}
