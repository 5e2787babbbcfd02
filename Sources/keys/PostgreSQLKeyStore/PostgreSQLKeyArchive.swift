internal import DeviceKey
internal import Dispatch
internal import Encodings
package import KeyStore

/// The `keys` commands on the database that gateways share.
///
/// A gateway asks the database about each use of a counter, so a key is refused from the moment its
/// revocation is committed. A request of a session is admitted without the database, but only if
/// the gateway has read changes a short time ago. Commands wait for that time.
package final class PostgreSQLKeyArchive: TableArchive {
    private let link: DatabaseLink
    /// For messages: the address may have a secret.
    private static let name = "postgresql"
    private let revokedWithin: Duration

    /// The minimum time for the database to answer a command: 30 s. No request waits for it, and a
    /// page of keys takes longer than the one use that `statement_timeout` is for.
    private static let statementTimeout = Duration.seconds(30)

    /// Connects, and checks the tables.
    package init(_ settings: PostgreSQLSettings) throws(StoreProblem) {
        var patient = settings
        patient.statementTimeout = max(settings.statementTimeout, Self.statementTimeout)
        link = DatabaseLink(patient)
        revokedWithin = settings.revokedWithin
        do throws(JournalError) {
            try DatabaseTables.check(
                try link.run { (link) throws(DatabaseFault) in try DatabaseTables.version(link) }
            )
        } catch {
            throw StoreProblem(error, Self.name)
        }
    }

    package func close() { link.close() }

    package func awaitGateways() {
        let milliseconds = Int(revokedWithin.nanosecondCount / 1_000_000) + 1
        // The gateways send no confirmation: they obey within this time.
        let time = DispatchTime.now() + .milliseconds(milliseconds)
        _ = DispatchSemaphore(value: 0).wait(timeout: time)
    }

    /// The statements of a change notify the gateways.
    package func announce() {}

    package func query<Value>(
        _ body: (DatabaseSession) throws(JournalError) -> Value
    ) throws(StoreProblem) -> Value {
        do throws(JournalError) {
            return try body(DatabaseSession(link: link))
        } catch {
            throw StoreProblem(error, Self.name)
        }
    }

    package func update<Value>(
        _ body: (DatabaseSession) throws(JournalError) -> Value
    ) throws(StoreProblem) -> Value {
        try query(body)
    }

    package func eraseDeleted() throws(StoreProblem) -> Int {
        try update { (session) throws(JournalError) in
            var count = 0
            while true {
                // After another command that does the same, which locks the state too.
                let rows = try session.eraseSome([DatabaseSession.nextRevision])
                guard !rows.isEmpty else { return count }
                count += rows.count
            }
        }
    }

    /// Takes a lease for work that one gateway does for all, such as expiring keys.
    ///
    /// - Returns: whether `holder` has it for this number of seconds; if not, another gateway has
    ///   it.
    package func lease(
        _ name: String,
        to holder: Int64,
        seconds: Int64
    ) throws(StoreProblem) -> Bool {
        let now = FleetDatabase.now
        return try update { (session) throws(JournalError) in
            let rows = try session.ask(
                """
                INSERT INTO leases (name, holder, ends_at) VALUES ($1, $2, \(now) + $3)
                ON CONFLICT (name) DO UPDATE SET holder = $2, ends_at = \(now) + $3
                    WHERE leases.ends_at <= \(now) OR leases.holder = $2
                RETURNING holder
                """,
                [.text(name), .number(holder), .number(seconds)]
            ) { (row) throws(JournalError) in try row.present(0) }
            return rows.count == 1
        }
    }

    package func spentTokens(
        after last: SpentToken?,
        limit: Int
    ) throws(StoreProblem) -> [SpentToken] {
        try query { (session) throws(JournalError) in
            let rows = try session.link.ask([TokenStatement.page(after: last, limit: limit)])
            return try TokenStatement.tokens(rows[0])
        }
    }

    package func spend(_ tokens: [SpentToken]) throws(StoreProblem) {
        guard !tokens.isEmpty else { return }
        try update { (session) throws(JournalError) in
            _ = try session.run([TokenStatement.statement(tokens)])
        }
    }
}

/// Statements on the tables, over a link.
package struct DatabaseSession: TableSession {
    fileprivate let link: DatabaseLink

    init(link: DatabaseLink) { self.link = link }

    package static var dialect: TableDialect { .postgreSQL }
    /// Each key takes up to four statements.
    package static var pieceCount: Int { 1_000 }
    package static let nextRevision = DatabaseStatement(
        "UPDATE state SET revision = revision + 1"
    )
    package static let notification = [DatabaseStatement("NOTIFY \(ChangeFollower.channel)")]

    package func ask<Value>(
        _ statements: [DatabaseStatement],
        _ read: (DatabaseRow) throws(JournalError) -> Value
    ) throws(JournalError) -> [[Value]] {
        var answers: [[Value]] = []
        for rows in try link.ask(statements) {
            answers.append(try rows.map { (row) throws(JournalError) in try read(row) })
        }
        return answers
    }

    @discardableResult
    package func run(_ statements: [DatabaseStatement]) throws(JournalError) -> [Int] {
        try link.ask(statements).map(\.changedCount)
    }

    package func records(_ statement: DatabaseStatement) throws(JournalError) -> [KeyRecord] {
        let found = try ask([statement]) { (row) throws(JournalError) in try row.keyRecord() }
        return found.first ?? []
    }

    /// A use is written to its key's row.
    package func lateUses() -> [Int64: CounterChange] { [:] }

    /// Stores keys in one transaction.
    package func store(_ records: [KeyRecord]) throws(JournalError) -> [StoreOutcome] {
        let secrets = try secrets()
        var statements = [Self.nextRevision]
        for record in records {
            statements += DatabaseStatement.insert(
                record,
                secrets,
                revision: "(SELECT revision FROM state)"
            )
            statements.append(.identity(of: record.keyID, secrets, in: Self.dialect))
            if case .deleted(let second) = record.status {
                statements.append(Self.burial(record, at: second))
            } else {
                statements.append(Self.merge(record))
            }
        }
        let rows = try link.ask(statements + Self.notification)
        var outcomes: [StoreOutcome] = []
        for (index, record) in records.enumerated() {
            // For each record: the app, the key, the stored row, the merge.
            let first = 1 + 4 * index
            guard let stored = try rows[first + 2].first?.keyIdentity() else {
                throw JournalError(
                    .busy,
                    "the marks of another store have come meanwhile",
                    next: "run the command again; it goes on where it was"
                )
            }
            let isSame =
                record.status.standing == .deleted
                ? stored.isOf(record) : stored.difference(from: record) == nil
            if rows[first + 1].count == 1 {
                outcomes.append(.inserted)
            } else {
                outcomes.append(isSame ? .merged : .differs(stored))
            }
        }
        return outcomes
    }

    /// Adds a record's further facts to a stored key, if it is the same key. What a list said of it
    /// comes with the revocation alone: where this store has revoked the key already, it may have
    /// another reason.
    private static func merge(_ record: KeyRecord) -> DatabaseStatement {
        let isSame = """
            k.key_id = $1 AND a.app_id = $8 AND k.public_key = $9 AND k.environment = $10
            AND k.platform = $13 AND k.deleted_at IS NULL
            """
        let counters = CounterColumns.merge("k.counter", "k.counter_window", with: "$2", and: "$3")
        return DatabaseStatement(
            """
            WITH chain AS (
                INSERT INTO chains (key, serials, certificates_issued, listed)
                SELECT k.id, $11, $12, CASE WHEN k.revoked_at IS NULL THEN $14 END
                FROM keys k JOIN apps a ON a.id = k.app
                WHERE $11 IS NOT NULL AND \(isSame)
                ON CONFLICT (key) DO NOTHING
            ), mark AS (
                UPDATE chains c SET listed = $14 FROM keys k JOIN apps a ON a.id = k.app
                WHERE c.key = k.id AND $14 IS NOT NULL AND k.revoked_at IS NULL AND \(isSame)
            )
            UPDATE keys k SET \(counters),
                enrolled_at = coalesce(k.enrolled_at, $4),
                last_used_at = CASE WHEN k.last_used_at >= $5 THEN k.last_used_at
                    ELSE coalesce($5, k.last_used_at) END,
                revoked_at = coalesce(k.revoked_at, $6),
                context = coalesce(k.context, $7),
                revision = (SELECT revision FROM state)
            FROM apps a
            WHERE a.id = k.app AND \(isSame)
            """,
            [
                .bytes(record.keyID.bytes), .number(Int64(record.counters.highest.rawValue)),
                .number(Int64(bitPattern: record.counters.seen)), .number(record.enrolledAt),
                .number(record.lastUsedAt), .number(record.revokedAt), .bytes(record.context),
                .text(record.appID), .bytes(record.point),
                .number(Int64(record.environment.number)), .text(record.chain?.serialText),
                .number(record.chain?.certificatesIssued.map { Int64($0) }),
                .number(Int64(record.platform.number)),
                .text(record.revokedAt == nil ? nil : record.chain?.listed),
            ]
        )
    }

    /// Deletes a key that was deleted elsewhere, if it is the same key.
    private static func burial(_ record: KeyRecord, at second: Int64) -> DatabaseStatement {
        DatabaseStatement(
            """
            WITH gone AS (
                UPDATE keys k SET \(KeyColumns.deletion(at: "$1")),
                    revision = (SELECT revision FROM state)
                FROM apps a
                WHERE k.key_id = $2 AND a.id = k.app AND a.app_id = $3 AND k.public_key = $4
                    AND k.environment = $5 AND k.platform = $6 AND k.deleted_at IS NULL
                RETURNING k.id
            ), receipt AS (
                DELETE FROM receipts WHERE key IN (SELECT id FROM gone)
            ), chain AS (
                DELETE FROM chains WHERE key IN (SELECT id FROM gone)
            )
            DELETE FROM renewals WHERE key IN (SELECT id FROM gone)
            """,
            [
                .number(max(second, 0)), .bytes(record.keyID.bytes), .text(record.appID),
                .bytes(record.point), .number(Int64(record.environment.number)),
                .number(Int64(record.platform.number)),
            ]
        )
    }
}
