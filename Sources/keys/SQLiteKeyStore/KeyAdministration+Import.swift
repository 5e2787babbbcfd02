internal import AppAttest
internal import Foundation
internal import GRDB
internal import KeyStore

extension KeyAdministration {
    /// Lines of one transaction: long enough that neighbours in the index share a page, short
    /// enough that a gateway's commits wait some hundred milliseconds at most.
    private static let transactionCount = 20_000

    /// Imports keys from lines of JSON, see ``KeyLine``.
    ///
    /// The file is read twice. First every line is read and compared with what is stored; when
    /// there is any problem, nothing is imported, unless `skipsProblems`. Then the lines are
    /// written, in transactions of some thousand. Should the disk fail in between, or another
    /// command interfere, the same import may be run again: it is idempotent.
    ///
    /// A key that is stored already keeps what it has: its counter is only raised, it stays
    /// revoked. A line that gives it another public key, app or environment is a problem.
    ///
    /// - `path`: a file, or `-` for standard input.
    /// - `apps`: App IDs that may be imported; `nil` for any.
    /// - `skipsProblems`: import the lines without a problem.
    package func importLines(
        from path: String,
        apps: Set<String>? = nil,
        skipsProblems: Bool = false
    ) throws(StoreProblem) -> ImportReport {
        let file = try LineFile(path: path)
        var report = ImportReport()
        let isEmpty = try count() == 0
        try chunks(of: file, apps: apps, &report) { (chunk, report) throws(StoreProblem) in
            for line in chunk where KeyID(of: line.record.publicKey) != line.record.keyID {
                report.strayCount += 1
            }
            guard !isEmpty else { return }
            try read { db in try Self.compare(chunk, db, &report) }
        }
        guard report.problemCount == 0 || skipsProblems else { return report }
        var written = ImportReport()
        written.strayCount = report.strayCount
        written.isImported = true
        try chunks(of: file, apps: apps, &written) { (chunk, written) throws(StoreProblem) in
            // In the order of the index, which then is written page after page.
            let order = chunk.indices.sorted { chunk[$0].prefix < chunk[$1].prefix }
            try write { db in try Self.store(chunk, order, db, &written) }
            try announce()
        }
        return written
    }

    private struct Line {
        let number: Int
        let record: KeyRecord
        let key: Data
        /// The first octets of the key id, to sort by.
        let prefix: UInt64

        init(_ number: Int, _ record: KeyRecord) {
            let octets = record.keyID.octets
            self.number = number
            self.record = record
            key = Data(octets)
            prefix = octets.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    /// Reads the lines in pieces; what can't be read goes into the report.
    private func chunks(
        of file: LineFile,
        apps: Set<String>?,
        _ report: inout ImportReport,
        _ body: ([Line], inout ImportReport) throws(StoreProblem) -> Void
    ) throws(StoreProblem) {
        var chunk: [Line] = []
        try file.forEachLine { (number, octets) throws(StoreProblem) in
            report.lines += 1
            do throws(KeyLine.Problem) {
                let record = try KeyLine.record(octets)
                if let apps, !apps.contains(record.appID) {
                    throw KeyLine.Problem("app_id: \(record.appID) is not in the configuration")
                }
                chunk.append(Line(number, record))
            } catch {
                report.add(error.text, line: number)
            }
            if chunk.count == Self.transactionCount {
                try body(chunk, &report)
                chunk.removeAll(keepingCapacity: true)
            }
        }
        if !chunk.isEmpty { try body(chunk, &report) }
    }

    private static func compare(
        _ chunk: [Line],
        _ db: Database,
        _ report: inout ImportReport
    ) throws {
        let select = try db.cachedStatement(sql: storedSelect)
        for line in chunk {
            guard let row = try Row.fetchOne(select, arguments: [line.key]) else { continue }
            if let text = try difference(line.record, row) { report.add(text, line: line.number) }
        }
    }

    private static let storedSelect = """
        SELECT k.public_key, a.app_id, k.environment FROM keys k JOIN apps a ON a.id = k.app
        WHERE k.key_id = ?
        """

    private static func difference(_ record: KeyRecord, _ row: Row) throws -> String? {
        let storedApp: String = row[1]
        let environment = try KeyColumns.environment(row, 2)
        if try KeyColumns.publicKey(row, 0) != record.publicKey {
            return "the key is stored with another public key"
        }
        if storedApp != record.appID { return "the key is stored for the app \(storedApp)" }
        guard environment == record.environment else {
            return "the key is stored for the environment \(environment.rawValue)"
        }
        return nil
    }

    private static let merge = """
        UPDATE keys SET \(KeySchema.merge(counter: "?2", window: "?3")),
            enrolled_at = coalesce(enrolled_at, ?4),
            last_used_at = nullif(max(coalesce(last_used_at, -1), coalesce(?5, -1)), -1),
            revoked_at = coalesce(revoked_at, ?6),
            revision = ?7
        WHERE key_id = ?1
        """

    /// Writes the lines. A key that came twice in the file is compared here.
    private static func store(
        _ chunk: [Line],
        _ order: [Int],
        _ db: Database,
        _ report: inout ImportReport
    ) throws {
        let revision = try nextRevision(db)
        let select = try db.cachedStatement(sql: storedSelect)
        let merge = try db.cachedStatement(sql: merge)
        for index in order {
            let line = chunk[index]
            let record = line.record
            if try KeyColumns.insert(record, revision: revision, db) {
                report.inserted += 1
                continue
            }
            guard let row = try Row.fetchOne(select, arguments: [line.key]) else {
                throw JournalError(.damaged, "a key is in an index and nowhere else")
            }
            if let text = try difference(record, row) {
                report.add(text, line: line.number)
                continue
            }
            let revokedAt: Int64? =
                if case .revoked(let second) = record.status { second } else { nil }
            try merge.execute(arguments: [
                line.key, Int64(record.counters.highest.rawValue),
                Int64(bitPattern: record.counters.seen), record.enrolledAt, record.lastUsedAt,
                revokedAt, revision,
            ])
            report.merged += 1
        }
    }
}
