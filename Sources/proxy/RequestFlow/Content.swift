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

/// How content is held.
enum Holding: Equatable {
    /// Until all of it can be judged.
    case judged
    /// No longer: it is too much, and the client is only observed. What has come goes on unjudged
    /// after this read.
    case released
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
