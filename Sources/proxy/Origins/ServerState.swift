import Synchronization

/// What all lanes know of a server.
package final class ServerState: Sendable {
    package let health = ServerHealth()
    /// Requests under way in the lower bits, and above them those that have ended: both change
    /// together when a request ends, for one write to memory that lanes share.
    private let requests = Atomic<UInt64>(0)

    /// The bits for requests under way: more than there are descriptors.
    private static let activeBits: UInt64 = 24
    private static let activeMask: UInt64 = (1 << activeBits) - 1

    package init() {}

    /// Requests that the server has, and connects for a request.
    package var active: Int { Int(requests.load(ordering: .relaxed) & Self.activeMask) }

    /// Requests that it has had.
    package var served: UInt64 { requests.load(ordering: .relaxed) >> Self.activeBits }

    /// A connect for a request begins, or a request takes an idle connection.
    func began() { requests.wrappingAdd(1, ordering: .relaxed) }

    /// What had begun has ended.
    ///
    /// - hadRequest: whether the server was sent a request meanwhile.
    func ended(hadRequest: Bool) {
        // One fewer under way, and one more above.
        let change: UInt64 = hadRequest ? (1 << Self.activeBits) &- 1 : 0 &- 1
        requests.wrappingAdd(change, ordering: .relaxed)
    }
}
