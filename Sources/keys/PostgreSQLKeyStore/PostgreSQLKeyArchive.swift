package import DeviceKey
internal import Dispatch
internal import Encodings
package import KeyStore

/// The `keys` commands on the database that gateways share.
///
/// A gateway asks the database about each use of a counter, so a key is refused from the moment its
/// revocation is committed. A request of a session is admitted without the database, but only if
/// the gateway has read changes a short time ago. Commands wait for that time.
package final class PostgreSQLKeyArchive: KeyArchive {
    let link: DatabaseLink
    /// For messages: the address may have a secret.
    private static let name = "postgresql"
    private let revokedWithin: Duration

    /// The minimum time for the database to answer a command: 30 s. No request waits for it, and a
    /// page of keys takes longer than the one use that `statement_timeout` is for.
    private static let statementTimeout = Duration.seconds(30)
    /// Keys of one transaction; each takes up to four statements.
    static let pieceCount = 1_000

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

    func ask(_ statements: [DatabaseStatement]) throws(StoreProblem) -> [DatabaseRows] {
        try attempt { () throws(JournalError) in try link.ask(statements) }
    }

    /// The rows of one statement.
    func ask(_ sql: String, _ values: [DatabaseValue]) throws(StoreProblem) -> DatabaseRows {
        try attempt { () throws(JournalError) in
            guard let rows = try link.ask([DatabaseStatement(sql, values)]).first else {
                throw JournalError.damaged("a statement without an answer")
            }
            return rows
        }
    }

    func attempt<Value>(_ body: () throws(JournalError) -> Value) throws(StoreProblem) -> Value {
        do throws(JournalError) {
            return try body()
        } catch {
            throw StoreProblem(error, Self.name)
        }
    }

    // MARK: Reading

    package func scan(
        _ filter: KeyFilter,
        after last: KeyID?,
        limit: Int
    ) throws(StoreProblem) -> KeyPage {
        let (condition, values) = filter.condition(from: 3)
        let rows = try ask(
            """
            \(KeyColumns.selectRecord) WHERE k.key_id > $1 AND \(condition)
            ORDER BY k.key_id LIMIT $2
            """,
            [.bytes(last?.bytes ?? []), .number(Int64(limit))] + values
        )
        let page = try attempt { () throws(JournalError) in try Self.records(rows) }
        return KeyPage(records: page, next: page.count == limit ? page.last?.keyID : nil)
    }

    private static func records(_ rows: DatabaseRows) throws(JournalError) -> [KeyRecord] {
        try rows.map { (row) throws(JournalError) in try KeyColumns.record(row) }
    }

    package func record(_ keyID: KeyID) throws(StoreProblem) -> KeyRecord? {
        let rows = try ask(
            KeyColumns.selectRecord + DatabaseMarks.ofKey,
            DatabaseMarks.values(keyID, try secrets())
        )
        return try attempt { () throws(JournalError) in try Self.records(rows).first }
    }

    package func keyIDs(
        loggedAs name: String,
        deleted: KeyFilter.Deleted
    ) throws(StoreProblem) -> [KeyID] {
        let column = deleted == .included ? "erased_under" : "deleted_at"
        var found: [KeyID] = []
        var last: [UInt8] = []
        let page: Int64 = 10_000
        while true {
            let rows = try ask(
                """
                SELECT key_id FROM keys WHERE key_id > $1 AND \(column) IS NULL
                ORDER BY key_id LIMIT $2
                """,
                [.bytes(last), .number(page)]
            )
            for row in rows {
                let keyID = try attempt { () throws(JournalError) in try KeyColumns.keyID(row, 0) }
                if keyID.logName.hasPrefix(name) { found.append(keyID) }
                last = keyID.bytes
            }
            if rows.count < page { return found }
        }
    }

    package func count() throws(StoreProblem) -> Int {
        let rows = try ask("SELECT count(*) FROM keys WHERE deleted_at IS NULL", [])
        return Int(try attempt { () throws(JournalError) in try rows[0].present(0) })
    }

    package func identities(of keyIDs: [KeyID]) throws(StoreProblem) -> [KeyID: KeyIdentity] {
        let secrets = try secrets()
        var identities: [KeyID: KeyIdentity] = [:]
        for start in stride(from: 0, to: keyIDs.count, by: Self.pieceCount) {
            let piece = keyIDs[start...].prefix(Self.pieceCount)
            let asked = piece.map { Self.identity(of: $0, secrets) }
            for (keyID, rows) in zip(piece, try ask(asked)) {
                identities[keyID] = try attempt { () throws(JournalError) in
                    try Self.identity(rows)
                }
            }
        }
        return identities
    }

    static func identity(of keyID: KeyID, _ secrets: ErasureSecrets) -> DatabaseStatement {
        DatabaseStatement(
            """
            SELECT k.public_key, a.app_id, k.environment, k.revoked_at, k.deleted_at, k.platform,
                k.erased_under IS NOT NULL
            FROM keys k JOIN apps a ON a.id = k.app\(DatabaseMarks.ofKey)
            """,
            DatabaseMarks.values(keyID, secrets)
        )
    }

    static func identity(_ rows: DatabaseRows) throws(JournalError) -> KeyIdentity? {
        guard let row = rows.first else { return nil }
        return KeyIdentity(
            platform: try KeyColumns.platform(row, 5),
            publicKey: try KeyColumns.publicKey(row, 0),
            appID: row.text(1) ?? "",
            environment: try KeyColumns.environment(row, 2),
            standing: try KeyColumns.status(row, 3, 4).standing,
            isErased: row.flag(6)
        )
    }

    package func receiptCensus(at now: Int64) throws(StoreProblem) -> ReceiptCensus {
        let rows = try ask([ReceiptColumns.census(at: now)])
        return try attempt { () throws(JournalError) in try ReceiptColumns.census(rows[0]) }
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
        let rows = try ask(
            """
            INSERT INTO leases (name, holder, ends_at) VALUES ($1, $2, \(now) + $3)
            ON CONFLICT (name) DO UPDATE SET holder = $2, ends_at = \(now) + $3
                WHERE leases.ends_at <= \(now) OR leases.holder = $2
            RETURNING holder
            """,
            [.text(name), .number(holder), .number(seconds)]
        )
        return rows.count == 1
    }
}

extension KeyFilter {
    /// The filter as a condition on `KeyColumns.selectRecord`, with parameters from this number on.
    fileprivate func condition(from first: Int) -> (sql: String, values: [DatabaseValue]) {
        var terms = [deleted == .included ? "true" : "k.deleted_at IS NULL"]
        var values: [DatabaseValue] = []
        func add(_ term: String, _ value: DatabaseValue) {
            terms.append("\(term) $\(first + values.count)")
            values.append(value)
        }
        if let appID { add("a.app_id =", .text(appID)) }
        if let environment { add("k.environment =", .number(Int64(environment.number))) }
        if let isRevoked { add("(k.revoked_at IS NOT NULL) =", .flag(isRevoked)) }
        if let source { add("k.is_imported =", .flag(source == .imported)) }
        if let riskMin {
            add("coalesce(n.risk_metric, c.certificates_issued) >=", .number(Int64(riskMin)))
        }
        if let unusedSince { add("coalesce(k.last_used_at, 0) <", .number(unusedSince)) }
        return (terms.joined(separator: " AND "), values)
    }
}
