import ClientStreams
import Lanes

/// Connections of proxies whose PROXY header is still to come, and what is told of those that
/// failed.
struct ProxiedSet {
    private(set) var connections: [ObjectIdentifier: ProxiedConnection] = [:]
    private var pace = ProxiedFault.Pace()

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
    mutating func count(now: UInt64) -> Int? { pace.count(now: now) }
}

extension ProxiedFault {
    /// How often a lane tells of failures that strangers can cause.
    struct Pace {
        /// How long nothing more is said: ten seconds.
        private static let quietNanoseconds: UInt64 = 10_000_000_000

        private var toldAt: UInt64?
        private var untold = 0

        /// Counts a failure: how many came since the last one that was told, this one included;
        /// `nil` when it is not to be told now.
        mutating func count(now: UInt64) -> Int? {
            untold += 1
            if let toldAt, now &- toldAt < Self.quietNanoseconds { return nil }
            toldAt = now
            defer { untold = 0 }
            return untold
        }
    }
}
