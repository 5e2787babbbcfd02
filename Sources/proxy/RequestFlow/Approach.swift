/// How a server is found for a request.
struct Approach: Equatable {
    var content: Content
    var attempt: Attempt
    /// What the origin is told of the verdict.
    let told: Told
    /// What became of the last connect.
    var lastConnect = ConnectFault.none
}

/// Which attempt it is to give a server the request.
package enum Attempt: Equatable, Sendable {
    /// The first: a connection from the pool will do.
    case first
    /// The second and last, on a new connection: others of the pool may be as old as the one that
    /// failed.
    case second
}

/// What the origin was told of the verdict.
package enum Told: Equatable, Sendable {
    case pass
    case anything
}

/// Why the last connect came to nothing.
package enum ConnectFault: Equatable, Sendable {
    /// There was none, or there is nothing to say of it.
    case none
    /// It was refused, or broke.
    case refused
    /// It was not answered in time.
    case timedOut
    /// The gateway has no descriptor or memory for it: its own trouble, and no server's.
    case shortage
}
