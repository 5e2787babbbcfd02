internal import Foundation
package import KeyStore

/// The findings of `portcullis doctor` about a database. It changes nothing.
package struct DatabaseCheckup: Hashable, Sendable {
    /// In PostgreSQL's form: 150004 is 15.4.
    package var version = 0
    /// Why the tables can't be used, or not over such connections, with the next step.
    package var tableFault: JournalError?
    /// Whether it accepts no writes: a standby, or set so.
    package var isReadOnly = false
    /// `on`, `off`, `local`, `remote_write` or `remote_apply`; `nil` where the database has no such
    /// setting.
    package var synchronousCommit: String?
    /// How far its clock is ahead of the gateway's.
    package var clockAhead = Duration.zero
    /// The most connections; `nil` where it does not say.
    package var connectionsMax: Int64?
    /// The current connections; `nil` where it does not say.
    package var connections: Int64?
    /// Rights that this role lacks: `INSERT on keys`.
    package var missingRights: [String] = []
    /// The time to connect, and the time to answer.
    package var connectTime = Duration.zero
    package var roundTrip = Duration.zero

    /// Connects and checks.
    ///
    /// - Throws: why there is no connection, or no answer.
    package init(_ settings: PostgreSQLSettings) throws(JournalError) {
        do throws(DatabaseFault) {
            try look(settings)
        } catch {
            throw error.journalError
        }
    }

    private mutating func look(_ settings: PostgreSQLSettings) throws(DatabaseFault) {
        let clock = ContinuousClock()
        let start = clock.now
        let connection = try DatabaseConnection.open(
            settings.address,
            until: start + settings.connectTimeout
        )
        connectTime = clock.now - start
        version = Int(connection.version)
        let deadline = clock.now + max(settings.statementTimeout, .seconds(2))
        let asked = clock.now
        let before = Self.unixMilliseconds
        let rows = try connection.run([DatabaseStatement(Self.settingsAsked)], until: deadline)
        roundTrip = clock.now - asked
        let here = before + (Self.unixMilliseconds - before) / 2
        guard let found = rows.first?.first else { throw .lost("no answer") }
        let there = (try? found.number(0)) ?? here
        clockAhead = .milliseconds(there.subtractingReportingOverflow(here).partialValue)
        isReadOnly = found.text(1) == "on"
        synchronousCommit = found.text(2)
        connectionsMax = found.text(3).flatMap { Int64($0) }
        // Not every database with this protocol has this view.
        let counting = DatabaseStatement(Self.connectionsAsked)
        connections = try refusable { () throws(DatabaseFault) in
            let rows = try connection.run([counting], until: deadline)
            return (try? rows.first?.first?.number(0)) ?? nil
        }
        do throws(DatabaseFault) {
            try connection.checkSession(settings)
        } catch {
            guard case .refused = error else { throw error }
            tableFault = error.journalError
            return
        }
        let tables = try DatabaseTables.version(connection)
        do throws(JournalError) {
            try DatabaseTables.check(tables)
        } catch {
            tableFault = error
            return
        }
        missingRights =
            try refusable { () throws(DatabaseFault) in
                let rows = try connection.run(
                    [DatabaseStatement(Self.rightsAsked)],
                    until: deadline
                )
                guard let found = rows.first else { return [] }
                return found.compactMap { $0.text(0) }
            } ?? []
    }

    /// Runs a query for which a refusal gives `nil`; the connection is good after it.
    private func refusable<Value>(
        _ body: () throws(DatabaseFault) -> Value?
    ) throws(DatabaseFault) -> Value? {
        do throws(DatabaseFault) {
            return try body()
        } catch {
            guard case .refused = error, !error.endsConnection else { throw error }
            return nil
        }
    }

    private static var unixMilliseconds: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    private static let settingsAsked = """
        SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
            current_setting('transaction_read_only', true),
            current_setting('synchronous_commit', true),
            current_setting('max_connections', true)
        """

    private static let connectionsAsked =
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"

    /// The rights that the gateway uses, of each table.
    private static let rightsAsked = """
        SELECT r.name || ' on ' || t.name
        FROM (VALUES \(DatabaseSchema.tables.map { "('\($0)')" }.joined(separator: ", ")))
            AS t (name)
        CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS r (name)
        WHERE NOT has_table_privilege(t.name, r.name)
        ORDER BY 1 LIMIT 8
        """
}

extension DatabaseConnection {
    /// Finds out whether transactions of this connection may run in several sessions of the server,
    /// as with a pooler of transactions. Prepared statements, settings and LISTEN would then fail.
    ///
    /// An idle pooler gives its last used session to the next client. So another connection queries
    /// between two queries of this one.
    ///
    /// - Throws: `refused` where they may; otherwise why the connection gave no answer.
    func checkSession(_ settings: PostgreSQLSettings) throws(DatabaseFault) {
        let deadline = ContinuousClock.now + settings.connectTimeout
        func session(_ connection: DatabaseConnection) throws(DatabaseFault) -> Int64? {
            let asked = DatabaseStatement("SELECT pg_backend_pid()::bigint")
            let rows = try connection.run([asked], until: deadline)
            return (try? rows.first?.first?.number(0)) ?? nil
        }
        let own = try session(self)
        // Without another connection, as where the role has no more, nothing can be found out.
        guard let probe = try? DatabaseConnection.open(settings.address, until: deadline)
        else { return }
        let other = try session(probe)
        let again = try session(self)
        guard own != nil, own == other || own != again else { return }
        // The server's name for a prepared statement that another session has.
        throw .refused(
            state: "26000",
            "the transactions of a connection run in several sessions of the server"
        )
    }
}
