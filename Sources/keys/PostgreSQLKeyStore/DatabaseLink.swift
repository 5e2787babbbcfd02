internal import Encodings
internal import KeyStore
internal import Synchronization
internal import Telemetry

/// A connection that is made again after it was lost: not at once after a failure, and not by all
/// gateways at the same moment.
final class DatabaseLink: Sendable {
    /// The most tries of a transaction that collided with others at the same rows.
    private static let collisionsMax = 5

    /// The pause before the next try to connect after this number of failures: 50 ms, doubled up to
    /// 1.6 s, less up to a half at random.
    static func pause(after failures: Int) -> Duration {
        let longest = 50.0 * Double(1 << min(failures, 5))
        return .milliseconds(Int(Double.random(in: longest / 2...longest)))
    }

    private struct State {
        var connection: DatabaseConnection?
        var failures = 0
        var retryAt = ContinuousClock.now
        var lastFault: DatabaseFault?
        var isClosed = false

        /// Why it is too early to connect again; `nil` when it is not.
        var pausedBy: DatabaseFault? {
            connection == nil && ContinuousClock.now < retryAt ? lastFault : nil
        }

        mutating func failed(_ fault: DatabaseFault) {
            guard fault.endsConnection else { return }
            connection = nil
            lastFault = fault
            retryAt = .now + pause(after: failures)
            failures += 1
        }
    }

    private let settings: PostgreSQLSettings
    private let state = Mutex(State())
    /// Other threads read it while the lock is held.
    let tally = LinkTally()

    init(_ settings: PostgreSQLSettings) { self.settings = settings }

    /// Runs statements as one transaction, and again when it collided with another one.
    func ask(_ statements: [DatabaseStatement]) throws(JournalError) -> [DatabaseRows] {
        guard !statements.isEmpty else { return [] }
        let timeout = settings.statementTimeout
        return try run { [tally] (connection) throws(DatabaseFault) in
            let deadline = ContinuousClock.now + timeout
            var tries = 1
            while true {
                let start = ContinuousClock.now
                do throws(DatabaseFault) {
                    let rows = try connection.run(statements, until: deadline)
                    tally.answered(in: ContinuousClock.now - start)
                    return rows
                } catch {
                    if case .refused = error { tally.answered(in: ContinuousClock.now - start) }
                    guard error.isCollision, tries < Self.collisionsMax else { throw error }
                    tries += 1
                    tally.retried(after: error)
                }
            }
        }
    }

    /// Calls `body` with the connection, which no other thread uses meanwhile.
    func run<Value>(
        _ body: (DatabaseConnection) throws(DatabaseFault) -> Value
    ) throws(JournalError) -> Value {
        let result: Result<Value, JournalError> = state.withLock { state in
            // A call in a pause is no failure of its own.
            if let fault = state.pausedBy { return .failure(fault.journalError) }
            do throws(DatabaseFault) {
                return .success(try body(try connection(&state)))
            } catch {
                if error.endsConnection, state.connection != nil { tally.disconnected() }
                state.failed(error)
                return .failure(error.journalError)
            }
        }
        return try result.get()
    }

    private func connection(_ state: inout State) throws(DatabaseFault) -> DatabaseConnection {
        // If the server has ended the connection meanwhile, no request loses its answer for that.
        if let connection = state.connection {
            guard connection.isOver else { return connection }
            tally.disconnected()
            state.connection = nil
        }
        guard !state.isClosed else { throw .unreachable("the store is closed", state: nil) }
        let deadline = ContinuousClock.now + settings.connectTimeout
        let connection: DatabaseConnection
        do throws(DatabaseFault) {
            connection = try DatabaseConnection.open(settings.address, until: deadline)
            try prepare(connection, until: deadline)
        } catch {
            tally.failed()
            throw error
        }
        state.connection = connection
        state.failures = 0
        tally.connected()
        return connection
    }

    /// Makes the server end slow statements, a little before the last caller gives up. It also
    /// makes the server detect a lost gateway while locks are held for it.
    private func prepare(
        _ connection: DatabaseConnection,
        until deadline: DatabaseConnection.Deadline
    ) throws(DatabaseFault) {
        let (seconds, attoseconds) = (settings.statementTimeout * 3 / 4).components
        let milliseconds = max(seconds * 1_000 + attoseconds / 1_000_000_000_000_000, 1)
        let values = [
            "statement_timeout = \(milliseconds)", "tcp_keepalives_idle = 10",
            "tcp_keepalives_interval = 5", "tcp_keepalives_count = 3",
        ]
        _ = try connection.run(values.map { DatabaseStatement("SET \($0)") }, until: deadline)
    }

    /// Checks whether the server has ended the connection, unless it is in use now. Never waits.
    func look() {
        _ = state.withLockIfAvailable { state in
            guard let connection = state.connection, connection.isOver else { return }
            state.connection = nil
            tally.disconnected()
        }
    }

    func close() {
        state.withLock { state in
            state.isClosed = true
            state.connection = nil
            tally.closed()
        }
    }
}

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
