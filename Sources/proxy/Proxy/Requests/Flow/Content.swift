import HTTPWire
import Rules

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

    /// The most content that goes to the origin in one piece with the head, in bytes.
    static let behindHeadMax: UInt64 = 1024

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

    /// Where content is judged that came whole with its head: where it is, and goes to the origin
    /// together with the head, or held. Other content stays with the client.
    static func place(ofWhole count: UInt64, by rule: Rule) -> Content {
        if let limit = rule.body.limit, count > UInt64(limit.rawValue) { return .unread }
        if count <= behindHeadMax { return .withHead }
        if case .held = rule.body { return .held }
        return .unread
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
        /// Bytes without a verdict that are gone here.
        case unjudged
    }

    /// What is left here of content that the server was given.
    enum Remains: Equatable {
        /// All that can be needed for a second attempt: it is held, or went with the head.
        case all(Content)
        case nothing
        /// Nothing, and it had no verdict.
        case unjudged
    }
}

/// What an origin was given of a request.
enum Delivery: Equatable, Sendable {
    /// Nothing, or nothing that counts: what a first attempt sent is forgotten with it.
    case nothing
    case whole
    /// The head and not all of the content; the connection was reset.
    case cutShort(Told)
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
