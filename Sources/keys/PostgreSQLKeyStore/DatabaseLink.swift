internal import KeyStore
internal import Synchronization

/// A connection that is made anew when it was lost: not at once after a failure, and not by all
/// gateways at the same moment.
final class DatabaseLink: Sendable {
    /// Tries of a transaction that met others at the same rows.
    private static let collisionsMax = 5

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
            // 50 ms, doubled to 1.6 s, less up to a half by chance.
            let longest = 50.0 * Double(1 << min(failures, 5))
            retryAt = .now + .milliseconds(Int(Double.random(in: longest / 2...longest)))
            failures += 1
        }
    }

    private let settings: PostgreSQLSettings
    private let state = Mutex(State())

    init(_ settings: PostgreSQLSettings) { self.settings = settings }

    /// Runs statements as one transaction, again when it collided with another one.
    func ask(_ statements: [DatabaseStatement]) throws(JournalError) -> [DatabaseRows] {
        guard !statements.isEmpty else { return [] }
        let timeout = settings.statementTimeout
        return try run { (connection) throws(DatabaseFault) in
            let deadline = ContinuousClock.now + timeout
            var tries = 1
            while true {
                do throws(DatabaseFault) {
                    return try connection.run(statements, until: deadline)
                } catch {
                    guard error.isCollision, tries < Self.collisionsMax else { throw error }
                    tries += 1
                }
            }
        }
    }

    /// Calls `body` with the connection, which nobody else uses meanwhile.
    func run<Value>(
        _ body: (DatabaseConnection) throws(DatabaseFault) -> Value
    ) throws(JournalError) -> Value {
        let result: Result<Value, JournalError> = state.withLock { state in
            // A call that comes too early for another try is no failure of its own.
            if let fault = state.pausedBy { return .failure(fault.journalError) }
            do throws(DatabaseFault) {
                return .success(try body(try connection(&state)))
            } catch {
                state.failed(error)
                return .failure(error.journalError)
            }
        }
        return try result.get()
    }

    private func connection(_ state: inout State) throws(DatabaseFault) -> DatabaseConnection {
        if let connection = state.connection { return connection }
        guard !state.isClosed else { throw .unreachable("the store is closed") }
        let deadline = ContinuousClock.now + settings.connectTimeout
        let connection = try DatabaseConnection(settings.address, until: deadline)
        state.connection = connection
        state.failures = 0
        return connection
    }

    func close() {
        state.withLock { state in
            state.isClosed = true
            state.connection = nil
        }
    }
}
