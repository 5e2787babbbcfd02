import ClientStreams
import Lanes

/// Connections of proxies whose PROXY header is still to come, and what is told of those that
/// failed.
struct ProxiedSet {
    /// How long a lane says nothing more of failures: ten seconds, since strangers can make as many
    /// as they like.
    private static let quietNanoseconds: UInt64 = 10_000_000_000

    private(set) var connections: [ObjectIdentifier: ProxiedConnection] = [:]
    private var toldAt: UInt64?
    private var untold = 0

    mutating func add(_ connection: ProxiedConnection) {
        connections[ObjectIdentifier(connection)] = connection
    }

    mutating func remove(_ connection: ProxiedConnection) {
        connections[ObjectIdentifier(connection)] = nil
    }

    /// Counts a failure.
    ///
    /// - Returns: how many came since the last one that was told, this one included; `nil` when it
    ///   is not to be told now.
    mutating func count(now: UInt64) -> Int? {
        untold += 1
        if let toldAt, now &- toldAt < Self.quietNanoseconds { return nil }
        toldAt = now
        defer { untold = 0 }
        return untold
    }
}
