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
package enum Via: Equatable, Sendable {
    case fresh
    case reused
}

/// Whether bytes wait in memory until the other side takes them.
package enum Output: Equatable, Sendable {
    case clear
    case queued
}

/// What an origin was given of a request.
package enum Delivery: Equatable, Sendable {
    /// Nothing, or nothing that counts: what a first attempt sent is forgotten with it.
    case nothing
    case whole
    /// The head and not all of the content; the connection was reset.
    case cutShort(Told)
}

/// What becomes of the connection to a server.
package enum Release: Equatable, Sendable {
    /// There is none.
    case none
    /// It may carry another request.
    case pool
    case close
    /// The server must not take what it got for a whole request.
    case reset
}
