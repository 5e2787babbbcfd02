internal import Cryptography
internal import DeviceKey
internal import Foundation
internal import GRDB
internal import KeyStore

/// Keys as rows of the database.
enum SQLiteKeyColumns {
    /// The columns of a key for the table in memory.
    static let select = """
        SELECT id, key_id, public_key, app, environment, counter, counter_window, revoked_at,
            context, CASE platform WHEN 2 THEN certificates_issued ELSE risk_metric END,
            CASE platform WHEN 2 THEN enrolled_at ELSE metric_at END, deleted_at,
            max(coalesce(last_used_at, enrolled_at), coalesce(enrolled_at, last_used_at)), platform,
            e.secret
        FROM keys LEFT JOIN renewals r ON r.key = id LEFT JOIN chains c ON c.key = id
            LEFT JOIN secrets e ON e.name = erased_under
        """

    /// Reads 32 bytes.
    static func keyID(_ row: Row, _ index: Int) throws -> KeyID {
        try row.withUnsafeData(atIndex: index) { data in
            guard let data, let keyID = KeyID(bytes: data) else {
                throw JournalError(.damaged, "a key id is not 32 bytes")
            }
            return keyID
        }
    }

    /// Reads 64 bytes, and checks that they are a point of the curve.
    static func publicKey(_ row: Row, _ index: Int) throws -> P256PublicKey {
        try row.withUnsafeData(atIndex: index) { data in
            guard let data, let key = P256PublicKey(raw: data.span) else {
                throw JournalError(.damaged, "a public key is not a point of P-256")
            }
            return key
        }
    }

    /// Reads the secret of a mark, or NULL.
    static func secret(_ row: Row, _ index: Int) throws -> ErasureSecret? {
        try row.withUnsafeData(atIndex: index) { data in
            guard let data else { return nil }
            guard let secret = ErasureSecret(bytes: data) else {
                throw JournalError(.damaged, "the secret of a mark is not 32 bytes")
            }
            return secret
        }
    }

    static func environment(_ row: Row, _ index: Int) throws -> KeyEnvironment {
        let number: Int64 = row[index]
        guard let byte = UInt8(exactly: number), let environment = KeyEnvironment(number: byte)
        else { throw JournalError(.damaged, "there is no environment \(number)") }
        return environment
    }

    static func platform(_ row: Row, _ index: Int) throws -> DevicePlatform {
        let number: Int64 = row[index]
        guard let byte = UInt8(exactly: number), let platform = DevicePlatform(number: byte)
        else { throw JournalError(.damaged, "there is no platform \(number)") }
        return platform
    }

    static func counters(_ row: Row, _ counter: Int, _ window: Int) throws -> CounterState {
        let number: Int64 = row[counter]
        let window: Int64 = row[window]
        guard let highest = UInt32(exactly: number) else {
            throw JournalError(.damaged, "\(number) is no counter")
        }
        return CounterState(
            highest: SignCounter(rawValue: highest),
            seen: UInt64(bitPattern: window)
        )
    }

    /// Reads 1…256 bytes, or NULL.
    static func context(_ row: Row, _ index: Int) throws -> [UInt8]? {
        try row.withUnsafeData(atIndex: index) { data in
            guard let data else { return nil }
            guard (1...KeyRecord.contextBytesMax).contains(data.count) else {
                throw JournalError(.damaged, "a context has \(data.count) bytes")
            }
            return Array(data)
        }
    }

    /// A key that was revoked and then deleted is deleted.
    static func status(_ row: Row, _ revoked: Int, _ deleted: Int) -> KeyRecord.Status {
        let (revokedAt, deletedAt): (Int64?, Int64?) = (row[revoked], row[deleted])
        if let deletedAt { return .deleted(at: deletedAt) }
        return revokedAt.map { .revoked(at: $0) } ?? .active
    }

    /// The risk of a key for the table in memory.
    static func risk(_ row: Row, _ metric: Int, _ time: Int) -> KeyRisk {
        let number: Int64? = row[metric]
        return KeyRisk(metric: number.flatMap(UInt32.init(exactly:)), at: row[time])
    }

    /// Stores a key with its receipt unless its key id exists; returns whether it stored the key.
    static func insert(_ record: KeyRecord, revision: Int64, _ db: Database) throws -> Bool {
        let app = try appRow(record.appID, db)
        precondition(record.status.standing != .deleted, "SQLiteKeyColumns: a deleted key")
        let revokedAt: Int64? = if case .revoked(let second) = record.status { second } else { nil }
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO keys (key_id, public_key, app, environment, is_imported, counter,
                    counter_window, enrolled_at, last_used_at, revoked_at, revision, context,
                    platform)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key_id) DO NOTHING
                """
        )
        let source = record.source == .imported ? 1 : 0
        statement.setUncheckedArguments([
            Data(record.keyID.bytes), Data(record.publicKey.x963.dropFirst()), app,
            Int64(record.environment.number), source, Int64(record.counters.highest.rawValue),
            Int64(bitPattern: record.counters.seen), record.enrolledAt, record.lastUsedAt,
            revokedAt, revision, record.context.map { Data($0) }, Int64(record.platform.number),
        ])
        try statement.execute()
        guard db.changesCount == 1 else { return false }
        let row = db.lastInsertedRowID
        if let chain = record.chain {
            try db.cachedStatement(
                sql: """
                    INSERT INTO chains (key, serials, certificates_issued, listed)
                    VALUES (?, ?, ?, ?)
                    """
            ).execute(arguments: [
                row, chain.serialText, chain.certificatesIssued.map { Int64($0) }, chain.listed,
            ])
        }
        if let receipt = record.receipt {
            try SQLiteReceiptColumns.insert(receipt, record.receiptState, ofRow: row, db)
        }
        return true
    }

    /// The row of an App ID, created where there is none.
    static func appRow(_ appID: String, _ db: Database) throws -> Int64 {
        let select = try db.cachedStatement(sql: "SELECT id FROM apps WHERE app_id = ?")
        if let row = try Int64.fetchOne(select, arguments: [appID]) { return row }
        try db.execute(sql: "INSERT INTO apps (app_id) VALUES (?)", arguments: [appID])
        return db.lastInsertedRowID
    }

    /// All columns of a key, with the names that ``record(_:)`` reads.
    static let selectRecord = """
        SELECT k.id, k.key_id, k.public_key, a.app_id, k.environment, k.counter, k.counter_window,
            k.revoked_at, k.is_imported, k.enrolled_at, k.last_used_at, r.receipt,
            k.context, k.deleted_at, \(SQLiteReceiptColumns.names(of: "n")), k.platform, c.serials,
            c.certificates_issued, c.listed, e.secret
        FROM keys k JOIN apps a ON a.id = k.app LEFT JOIN receipts r ON r.key = k.id
            LEFT JOIN renewals n ON n.key = k.id LEFT JOIN chains c ON c.key = k.id
            LEFT JOIN secrets e ON e.name = k.erased_under
        """

    private static func chain(_ row: Row, from first: Int) -> ChainRecord? {
        let serials: String? = row[first]
        let issued: Int64? = row[first + 1]
        return serials.map { serials in
            ChainRecord(
                serialText: serials,
                certificatesIssued: issued.flatMap(UInt32.init(exactly:)),
                listed: row[first + 2]
            )
        }
    }

    /// - `newer`: the entries of the log of counters.
    static func record(
        _ row: Row,
        _ newer: [Int64: CounterChange],
        _ anchors: CounterAnchors
    ) throws -> KeyRecord {
        if let secret = try secret(row, 27) {
            return .erased(try keyID(row, 1), under: secret, at: row[13] ?? 0)
        }
        let isImported: Bool = row[8]
        let receipt: Data? = row[11]
        var record = KeyRecord(
            keyID: try keyID(row, 1),
            platform: try platform(row, 23),
            appID: row[3],
            environment: try environment(row, 4),
            publicKey: try publicKey(row, 2),
            counters: try counters(row, 5, 6),
            receipt: receipt.map { Array($0) },
            receiptState: receipt == nil
                ? ReceiptState() : try SQLiteReceiptColumns.state(row, from: 14),
            chain: chain(row, from: 24),
            context: try context(row, 12),
            enrolledAt: row[9],
            lastUsedAt: row[10],
            status: status(row, 7, 13),
            source: isImported ? .imported : .enrolled
        )
        if let change = newer[row[0]] {
            record.counters.merge(change.counters)
            // A deleted key has no times.
            if record.status.standing != .deleted {
                record.lastUsedAt = max(record.lastUsedAt ?? 0, change.usedAt)
            }
        }
        let lastKnown = [record.enrolledAt, record.lastUsedAt].compactMap(\.self).max()
        record.anchor = anchors.anchor(lastKnown: lastKnown)
        return record
    }
}
