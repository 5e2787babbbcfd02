import HTTPWire
import Rules

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
