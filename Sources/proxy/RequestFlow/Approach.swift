/// How a server is found for a request.
struct Approach: Equatable {
    let content: Content
    let attempt: Attempt
    /// What the origin is told of the verdict.
    let told: Told
}

/// Which attempt it is to give a server the request.
package enum Attempt: Equatable, Sendable {
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
package enum Told: Equatable, Sendable {
    case pass
    case anything
}

/// Why no server took a connection.
package enum ConnectFault: Equatable, Sendable {
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
