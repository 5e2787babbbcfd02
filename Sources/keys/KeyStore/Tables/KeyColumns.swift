package import DeviceKey
package import Signatures

/// Keys as rows of the tables.
package enum KeyColumns {
    /// The columns of a key for the table in memory, as ``StoredRow/keyRow(apps:anchor:)`` reads
    /// them.
    package static let select = selectRow()

    /// - more: further columns, each with a comma before it.
    package static func selectRow(with more: String = "") -> String {
        """
        SELECT k.id, k.key_id, k.public_key, a.app_id, k.environment, k.counter,
            k.counter_window, k.revoked_at, k.deleted_at, k.context,
            CASE k.platform WHEN 2 THEN c.certificates_issued ELSE n.risk_metric END,
            CASE k.platform WHEN 2 THEN k.enrolled_at ELSE n.metric_at END, k.platform,
            e.secret\(more)
        FROM keys k JOIN apps a ON a.id = k.app LEFT JOIN renewals n ON n.key = k.id
            LEFT JOIN chains c ON c.key = k.id LEFT JOIN secrets e ON e.name = k.erased_under
        """
    }

    /// All columns of a key, as ``StoredRow/keyRecord()`` reads them.
    package static let selectRecord = """
        SELECT k.id, k.key_id, k.public_key, a.app_id, k.environment, k.counter,
            k.counter_window, k.revoked_at, k.deleted_at, k.context, k.is_imported,
            k.enrolled_at, k.last_used_at, r.receipt, \(ReceiptColumns.names(of: "n")),
            k.platform, c.serials, c.certificates_issued, c.listed, e.secret
        FROM keys k JOIN apps a ON a.id = k.app LEFT JOIN receipts r ON r.key = k.id
            LEFT JOIN renewals n ON n.key = k.id LEFT JOIN chains c ON c.key = k.id
            LEFT JOIN secrets e ON e.name = k.erased_under
        """

    /// What never changes of a key, as ``StoredRow/keyIdentity()`` reads it.
    package static let selectIdentity = """
        SELECT k.public_key, a.app_id, k.environment, k.revoked_at, k.deleted_at, k.platform,
            k.erased_under IS NOT NULL
        FROM keys k JOIN apps a ON a.id = k.app
        """

    /// The assignments that delete a key. Its row stays, so that its number, key id and counter
    /// can't be used again, until the erasure leaves the number and a mark.
    ///
    /// - second: when it is deleted, as SQL.
    package static func deletion(at second: String) -> String {
        "deleted_at = \(second), context = NULL, enrolled_at = NULL, last_used_at = NULL"
    }

    /// Deletes a key.
    package static func delete(_ keyID: KeyID, at second: Int64) -> [DatabaseStatement] {
        let id = StatementValue.bytes(keyID.bytes)
        let emptied = furtherTables.map { table in
            DatabaseStatement(
                "DELETE FROM \(table) WHERE key = (SELECT id FROM keys WHERE key_id = $1)",
                [id]
            )
        }
        return [set(deletion(at: "$2"), of: keyID, [.number(max(second, 0))])] + emptied
    }

    /// Changes a key by assignments, whose parameters begin with the second, and marks it for the
    /// gateways to read.
    static func set(
        _ assignments: String,
        of keyID: KeyID,
        _ values: [StatementValue]
    ) -> DatabaseStatement {
        DatabaseStatement(
            """
            UPDATE keys SET \(assignments), revision = (SELECT revision FROM state)
            WHERE key_id = $1
            """,
            [.bytes(keyID.bytes)] + values
        )
    }

    /// Marks a key for the gateways to read.
    package static func touch(_ row: Int64) -> DatabaseStatement {
        DatabaseStatement(
            "UPDATE keys SET revision = (SELECT revision FROM state) WHERE id = $1",
            [.number(row)]
        )
    }

    /// Stores the app of a key.
    package static func insertApp(_ appID: String) -> DatabaseStatement {
        DatabaseStatement(
            "INSERT INTO apps (app_id) VALUES ($1) ON CONFLICT (app_id) DO NOTHING",
            [.text(appID)]
        )
    }

    /// The beginning of the statement that stores a key of an app that is there; further conditions
    /// follow. ``values(_:)`` has its parameters, twelve.
    ///
    /// - revision: as SQL.
    package static func insert(revision: String) -> String {
        """
        INSERT INTO keys (key_id, public_key, app, environment, is_imported, counter,
            counter_window, enrolled_at, last_used_at, revoked_at, context, platform, revision)
        SELECT $1, $2, a.id, $4, $5, $6, $7, $8, $9, $10, $11, $12, \(revision)
        FROM apps a WHERE a.app_id = $3
        """
    }

    package static func values(_ record: KeyRecord) -> [StatementValue] {
        [
            .bytes(record.keyID.bytes), .bytes(record.point), .text(record.appID),
            .number(Int64(record.environment.number)), .flag(record.source == .imported),
            .number(Int64(record.counters.highest.rawValue)),
            .number(Int64(bitPattern: record.counters.seen)), .number(record.enrolledAt),
            .number(record.lastUsedAt), .number(record.revokedAt), .bytes(record.context),
            .number(Int64(record.platform.number)),
        ]
    }

    /// The values of a key's row in the table `chains`: serials, certificates, entry of a list.
    package static func values(_ chain: ChainRecord?) -> [StatementValue] {
        [
            .text(chain?.serialText), .number(chain?.certificatesIssued.map { Int64($0) }),
            .text(chain?.listed),
        ]
    }

    /// The tables that have further rows of a key.
    package static let furtherTables = ["receipts", "renewals", "chains"]
}

extension KeyRecord {
    /// X and Y of the public key, 64 bytes.
    package var point: [UInt8] { Array(publicKey.x963.dropFirst()) }

    /// The second of the revocation; `nil` for a key that is not revoked.
    package var revokedAt: Int64? {
        if case .revoked(let second) = status { second } else { nil }
    }
}

extension StoredRow {
    /// - anchor: whether the counters are known to be the last ones.
    package func keyRow(
        apps: AppNumbers,
        anchor: CounterAnchor = .held
    ) throws(JournalError) -> KeyRow {
        let risk = try number(10)
        return KeyRow(
            row: try present(0),
            keyID: try keyID(1),
            platform: try platform(12),
            publicKey: try publicKey(2),
            app: apps.number(of: text(3) ?? ""),
            environment: try environment(4),
            counters: try counters(from: 5),
            standing: try status(from: 7).standing,
            context: try context(9),
            risk: KeyRisk(metric: risk.flatMap(UInt32.init(exactly:)), at: try number(11)),
            anchor: anchor,
            erasure: try secret(13)
        )
    }

    package func keyRecord() throws(JournalError) -> KeyRecord {
        if let secret = try secret(27) {
            return .erased(try keyID(1), under: secret, at: try present(8))
        }
        let receipt = bytes(13)
        return KeyRecord(
            keyID: try keyID(1),
            platform: try platform(23),
            appID: text(3) ?? "",
            environment: try environment(4),
            publicKey: try publicKey(2),
            counters: try counters(from: 5),
            receipt: receipt,
            receiptState: receipt == nil ? ReceiptState() : try receiptState(from: 14),
            chain: try chain(from: 24),
            context: try context(9),
            enrolledAt: try number(11),
            lastUsedAt: try number(12),
            status: try status(from: 7),
            source: flag(10) ? .imported : .enrolled
        )
    }

    package func keyIdentity() throws(JournalError) -> KeyIdentity {
        KeyIdentity(
            platform: try platform(5),
            publicKey: try publicKey(0),
            appID: text(1) ?? "",
            environment: try environment(2),
            standing: try status(from: 3).standing,
            isErased: flag(6)
        )
    }

    private func chain(from first: Int) throws(JournalError) -> ChainRecord? {
        guard let serials = text(first) else { return nil }
        return ChainRecord(
            serialText: serials,
            certificatesIssued: try number(first + 1).flatMap(UInt32.init(exactly:)),
            listed: text(first + 2)
        )
    }

    // MARK: One column

    package func platform(_ column: Int) throws(JournalError) -> DevicePlatform {
        let number = try present(column)
        guard let found = UInt8(exactly: number).flatMap(DevicePlatform.init(number:)) else {
            throw damaged("there is no platform \(number)")
        }
        return found
    }

    package func environment(_ column: Int) throws(JournalError) -> KeyEnvironment {
        let number = try present(column)
        guard let found = UInt8(exactly: number).flatMap(KeyEnvironment.init(number:)) else {
            throw damaged("there is no environment \(number)")
        }
        return found
    }

    /// Reads the secret of a mark, or NULL.
    package func secret(_ column: Int) throws(JournalError) -> ErasureSecret? {
        guard let bytes = bytes(column) else { return nil }
        guard let secret = ErasureSecret(bytes: bytes) else {
            throw damaged("the secret of a mark is not 32 bytes")
        }
        return secret
    }

    package func keyID(_ column: Int) throws(JournalError) -> KeyID {
        guard let bytes = bytes(column), let keyID = KeyID(bytes: bytes) else {
            throw damaged("a key id is not 32 bytes")
        }
        return keyID
    }

    /// Reads 64 bytes, and checks that they are a point of the curve.
    package func publicKey(_ column: Int) throws(JournalError) -> P256PublicKey {
        guard let bytes = bytes(column), let key = P256PublicKey(raw: bytes.span) else {
            throw damaged("a public key is not a point of P-256")
        }
        return key
    }

    /// Reads the highest counter, and its window in the next column.
    package func counters(from first: Int) throws(JournalError) -> CounterState {
        let number = try present(first)
        guard let highest = UInt32(exactly: number) else {
            throw damaged("\(number) is no counter")
        }
        return CounterState(
            highest: SignCounter(rawValue: highest),
            seen: UInt64(bitPattern: try present(first + 1))
        )
    }

    /// Reads the second of the revocation, and that of the deletion in the next column. A key that
    /// was revoked and then deleted is deleted.
    package func status(from first: Int) throws(JournalError) -> KeyRecord.Status {
        if let second = try number(first + 1) { return .deleted(at: second) }
        return try number(first).map { .revoked(at: $0) } ?? .active
    }

    private func context(_ column: Int) throws(JournalError) -> [UInt8]? {
        guard let context = bytes(column) else { return nil }
        guard (1...KeyRecord.contextBytesMax).contains(context.count) else {
            throw damaged("a context has \(context.count) bytes")
        }
        return context
    }
}

extension KeyFilter {
    /// The filter as a condition on ``KeyColumns/selectRecord``, with parameters from this number
    /// on. It matches all keys of the filter, and some keys whose last use is not in their row yet.
    func condition(from first: Int) -> (sql: String, values: [StatementValue]) {
        var terms = [deleted == .included ? "true" : "k.deleted_at IS NULL"]
        var values: [StatementValue] = []
        func add(_ term: String, _ value: StatementValue) {
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
