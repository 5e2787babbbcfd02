internal import Cryptography
internal import DeviceKey
internal import KeyStore

/// Keys as rows of the database.
enum KeyColumns {
    /// The columns of a key for the table in memory, in the order in which ``row(_:_:apps:)`` reads
    /// them.
    static let select = """
        SELECT k.id, k.key_id, k.public_key, a.app_id, k.environment, k.counter,
            k.counter_window, k.revoked_at, k.deleted_at, k.context,
            CASE k.platform WHEN 2 THEN c.certificates_issued ELSE n.risk_metric END,
            CASE k.platform WHEN 2 THEN k.enrolled_at ELSE n.metric_at END, k.platform
        FROM keys k JOIN apps a ON a.id = k.app LEFT JOIN renewals n ON n.key = k.id
            LEFT JOIN chains c ON c.key = k.id
        """

    static func row(
        _ rows: DatabaseRows,
        _ row: Int,
        apps: AppNumbers
    ) throws(JournalError) -> KeyRow {
        let risk = try rows.number(row, 10)
        return KeyRow(
            row: try rows.present(row, 0),
            keyID: try keyID(rows, row, 1),
            platform: try platform(rows, row, 12),
            publicKey: try publicKey(rows, row, 2),
            app: apps.number(of: rows.text(row, 3) ?? ""),
            environment: try environment(rows, row, 4),
            counters: try counters(rows, row, 5, 6),
            standing: try status(rows, row, 7, 8).standing,
            context: try context(rows, row, 9),
            risk: KeyRisk(
                metric: risk.flatMap(UInt32.init(exactly:)),
                at: try rows.number(row, 11)
            )
        )
    }

    /// All columns of a key, in the order in which ``record(_:_:)`` reads them.
    static let selectRecord = """
        SELECT k.id, k.key_id, k.public_key, a.app_id, k.environment, k.counter,
            k.counter_window, k.revoked_at, k.deleted_at, k.context, k.is_imported,
            k.enrolled_at, k.last_used_at, r.receipt, \(ReceiptColumns.names(of: "n")),
            k.platform, c.serials, c.certificates_issued, c.listed
        FROM keys k JOIN apps a ON a.id = k.app LEFT JOIN receipts r ON r.key = k.id
            LEFT JOIN renewals n ON n.key = k.id LEFT JOIN chains c ON c.key = k.id
        """

    static func record(_ rows: DatabaseRows, _ row: Int) throws(JournalError) -> KeyRecord {
        let receipt = rows.bytes(row, 13)
        return KeyRecord(
            keyID: try keyID(rows, row, 1),
            platform: try platform(rows, row, 23),
            appID: rows.text(row, 3) ?? "",
            environment: try environment(rows, row, 4),
            publicKey: try publicKey(rows, row, 2),
            counters: try counters(rows, row, 5, 6),
            receipt: receipt,
            receiptState: receipt == nil
                ? ReceiptState() : try ReceiptColumns.state(rows, row, from: 14),
            chain: try chain(rows, row, from: 24),
            context: try context(rows, row, 9),
            enrolledAt: try rows.number(row, 11),
            lastUsedAt: try rows.number(row, 12),
            status: try status(rows, row, 7, 8),
            source: rows.flag(row, 10) ? .imported : .enrolled
        )
    }

    private static func chain(
        _ rows: DatabaseRows,
        _ row: Int,
        from first: Int
    ) throws(JournalError) -> ChainRecord? {
        guard let serials = rows.text(row, first) else { return nil }
        return ChainRecord(
            serialText: serials,
            certificatesIssued: try rows.number(row, first + 1).flatMap(UInt32.init(exactly:)),
            listed: rows.text(row, first + 2)
        )
    }

    // MARK: One column

    static func platform(
        _ rows: DatabaseRows,
        _ row: Int,
        _ column: Int
    ) throws(JournalError) -> DevicePlatform {
        try word(rows, row, column, "platform", DevicePlatform.init(number:))
    }

    /// Reads the number of one of a few words.
    private static func word<Word>(
        _ rows: DatabaseRows,
        _ row: Int,
        _ column: Int,
        _ name: String,
        _ word: (UInt8) -> Word?
    ) throws(JournalError) -> Word {
        let number = try rows.present(row, column)
        guard let found = UInt8(exactly: number).flatMap(word) else {
            throw JournalError.damaged("there is no \(name) \(number)")
        }
        return found
    }

    static func keyID(
        _ rows: DatabaseRows,
        _ row: Int,
        _ column: Int
    ) throws(JournalError) -> KeyID {
        guard let bytes = rows.bytes(row, column), let keyID = KeyID(bytes: bytes) else {
            throw JournalError.damaged("a key id is not 32 bytes")
        }
        return keyID
    }

    /// Reads 64 bytes, and checks that they are a point of the curve.
    static func publicKey(
        _ rows: DatabaseRows,
        _ row: Int,
        _ column: Int
    ) throws(JournalError) -> P256PublicKey {
        guard let bytes = rows.bytes(row, column), let key = P256PublicKey(raw: bytes.span) else {
            throw JournalError.damaged("a public key is not a point of P-256")
        }
        return key
    }

    static func environment(
        _ rows: DatabaseRows,
        _ row: Int,
        _ column: Int
    ) throws(JournalError) -> KeyEnvironment {
        try word(rows, row, column, "environment", KeyEnvironment.init(number:))
    }

    private static func counters(
        _ rows: DatabaseRows,
        _ row: Int,
        _ counter: Int,
        _ window: Int
    ) throws(JournalError) -> CounterState {
        let number = try rows.present(row, counter)
        guard let highest = UInt32(exactly: number) else {
            throw JournalError.damaged("\(number) is no counter")
        }
        return CounterState(
            highest: SignCounter(rawValue: highest),
            seen: UInt64(bitPattern: try rows.present(row, window))
        )
    }

    /// A key that was revoked and then deleted is deleted.
    static func status(
        _ rows: DatabaseRows,
        _ row: Int,
        _ revoked: Int,
        _ deleted: Int
    ) throws(JournalError) -> KeyRecord.Status {
        if let second = try rows.number(row, deleted) { return .deleted(at: second) }
        return try rows.number(row, revoked).map { .revoked(at: $0) } ?? .active
    }

    private static func context(
        _ rows: DatabaseRows,
        _ row: Int,
        _ column: Int
    ) throws(JournalError) -> [UInt8]? {
        guard let context = rows.bytes(row, column) else { return nil }
        guard (1...KeyRecord.contextBytesMax).contains(context.count) else {
            throw JournalError.damaged("a context has \(context.count) bytes")
        }
        return context
    }
}
