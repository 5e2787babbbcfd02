/// One address on which clients are accepted.
package struct ListenSettings: Hashable, Sendable {
    /// An IP address and port (0: the system chooses), or a Unix socket.
    package let address: ServerAddress
    /// `nil` for plain HTTP.
    package var tls: TLS?
}

/// How many lanes serve connections.
package enum LaneCount: Hashable, Sendable {
    /// One for each core that the process may use. The default.
    case perCore
    /// 1…256.
    case fixed(Int)
}
