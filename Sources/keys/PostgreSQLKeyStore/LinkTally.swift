internal import KeyStore
internal import Synchronization
internal import Telemetry

/// The counters and the state of one connection. Reading them never waits for the database. The
/// link's own lock is held until the database answers.
final class LinkTally: Sendable {
    private let isConnected = Atomic(false)
    private let made = Atomic<UInt64>(0)
    private let lost = Atomic<UInt64>(0)
    private let failures = Atomic<UInt64>(0)
    private let serializationRetries = Atomic<UInt64>(0)
    private let deadlockRetries = Atomic<UInt64>(0)
    private let roundTrips = Mutex(Histogram())

    func connected() {
        made.add(1, ordering: .relaxed)
        isConnected.store(true, ordering: .relaxed)
    }

    /// A try to connect failed.
    func failed() { failures.add(1, ordering: .relaxed) }

    /// The connection can't be used any more.
    func disconnected() {
        lost.add(1, ordering: .relaxed)
        isConnected.store(false, ordering: .relaxed)
    }

    /// The connection is not needed any more.
    func closed() { isConnected.store(false, ordering: .relaxed) }

    func answered(in time: Duration) {
        let (seconds, attoseconds) = time.components
        let nanoseconds = UInt64(clamping: seconds).multipliedReportingOverflow(by: 1_000_000_000)
        guard !nanoseconds.overflow else { return }
        let rest = UInt64(clamping: attoseconds / 1_000_000_000)
        roundTrips.withLock { $0.add(nanoseconds.partialValue &+ rest) }
    }

    /// A transaction is retried.
    func retried(after fault: DatabaseFault) {
        if fault.isDeadlock {
            deadlockRetries.add(1, ordering: .relaxed)
        } else {
            serializationRetries.add(1, ordering: .relaxed)
        }
    }

    func figures(of role: DatabaseStatistics.Role) -> DatabaseStatistics.Connection {
        var figures = DatabaseStatistics.Connection(role)
        figures.isConnected = isConnected.load(ordering: .relaxed)
        figures.made = made.load(ordering: .relaxed)
        figures.lost = lost.load(ordering: .relaxed)
        figures.failures = failures.load(ordering: .relaxed)
        figures.serializationRetries = serializationRetries.load(ordering: .relaxed)
        figures.deadlockRetries = deadlockRetries.load(ordering: .relaxed)
        figures.roundTrips = roundTrips.withLock { $0 }
        return figures
    }
}
