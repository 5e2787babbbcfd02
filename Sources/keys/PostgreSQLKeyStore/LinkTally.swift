internal import Encodings
internal import KeyStore
internal import Synchronization
internal import Telemetry

/// The counters and the state of one connection. Reading them never waits for the database. The
/// link's own lock is held until the database answers.
final class LinkTally: Sendable {
    /// ``figures(of:)`` sets the role.
    private let state = Mutex(DatabaseStatistics.Connection(.writer))

    func connected() { state.withLock { ($0.made, $0.isConnected) = ($0.made &+ 1, true) } }

    /// A try to connect failed.
    func failed() { state.withLock { $0.failures &+= 1 } }

    /// The connection can't be used any more.
    func disconnected() { state.withLock { ($0.lost, $0.isConnected) = ($0.lost &+ 1, false) } }

    /// The connection is not needed any more.
    func closed() { state.withLock { $0.isConnected = false } }

    func answered(in time: Duration) {
        state.withLock { $0.roundTrips.add(time.nanosecondCount) }
    }

    /// A transaction is retried.
    func retried(after fault: DatabaseFault) {
        state.withLock { state in
            if fault.isDeadlock {
                state.deadlockRetries &+= 1
            } else {
                state.serializationRetries &+= 1
            }
        }
    }

    func figures(of role: DatabaseStatistics.Role) -> DatabaseStatistics.Connection {
        var figures = state.withLock { $0 }
        figures.role = role
        return figures
    }
}
