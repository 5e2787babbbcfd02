internal import Foundation
package import KeyStore

/// The version of the tables, and the steps to this program's version.
package enum DatabaseMigration {
    /// The state of the tables.
    struct State {
        /// 0 where there are none.
        var version: Int64
        /// The lowest version whose program can use them.
        var oldestReader: Int64

        /// - Throws: that this program can't use them, with the next step.
        func check() throws(JournalError) {
            guard version > 0 else {
                throw JournalError(
                    .unusable,
                    "the database has no tables of Portcullis: run portcullis store migrate",
                    next: DatabaseHint.next("42P01", "")
                )
            }
            guard version >= DatabaseSchema.version else {
                throw JournalError(
                    .unusable,
                    "the tables are of version \(version), and this program needs "
                        + "\(DatabaseSchema.version): run portcullis store migrate",
                    next: "run portcullis store migrate, as a role that may change tables"
                )
            }
            guard oldestReader <= DatabaseSchema.version else {
                throw JournalError(
                    .unusable,
                    "the tables are of version \(version), which programs below version "
                        + "\(oldestReader) can't use: install a newer portcullis",
                    next: "install a newer portcullis"
                )
            }
        }
    }

    static func state(_ connection: DatabaseConnection) throws(DatabaseFault) -> State {
        do throws(DatabaseFault) {
            let select = DatabaseStatement(
                "SELECT version, oldest_reader FROM schema_steps ORDER BY version DESC LIMIT 1"
            )
            let deadline = ContinuousClock.now + .seconds(5)
            guard let row = try connection.run([select], until: deadline).first?.first
            else { return State(version: 0, oldestReader: 0) }
            do throws(JournalError) {
                return State(version: try row.present(0), oldestReader: try row.present(1))
            } catch {
                throw DatabaseFault.lost(error.detail)
            }
        } catch {
            guard case .refused("42P01", _) = error else { throw error }
            return State(version: 0, oldestReader: 0)
        }
    }

    /// The result of a migration.
    package struct Outcome: Equatable, Sendable {
        /// The versions that this migration has made.
        package var made: [Int64] = []
        /// The version of the tables.
        package var version: Int64
        /// Whether that version is newer than this program's, and this program can use it.
        package var isNewer: Bool { version > DatabaseSchema.version }
    }

    /// The most tries: more migrations than this don't run at the same time.
    private static let triesMax = 32

    /// Makes the missing steps, each in its own transaction. If two migrations run at the same
    /// time, one makes a step. The other is refused without a change, and continues with the new
    /// state.
    ///
    /// - Throws: also where the tables are of a newer version that this program can't use.
    package static func run(_ settings: PostgreSQLSettings) throws(JournalError) -> Outcome {
        let link = DatabaseLink(settings)
        defer { link.close() }
        var made: [Int64] = []
        for _ in 0..<triesMax {
            guard try attempt(link, [DatabaseStatement(DatabaseSchema.begin)]) else { continue }
            let found = try link.run { (connection) throws(DatabaseFault) in
                try state(connection)
            }
            guard found.version < DatabaseSchema.version else {
                try found.check()
                // Now, so that every standby has it long before the first mark.
                if !made.isEmpty {
                    _ = try link.ask([DatabaseMarks.keep(.drawn(), ErasureSecret.ownName)])
                }
                return Outcome(made: made, version: found.version)
            }
            let version = found.version + 1
            let note = DatabaseStatement(
                """
                INSERT INTO schema_steps (version, oldest_reader, made_at)
                SELECT $1, coalesce(max(oldest_reader), $2), $3 FROM schema_steps
                """,
                [.number(version), .number(1), .number(Int64(Date().timeIntervalSince1970))]
            )
            let step = DatabaseSchema.steps[Int(version) - 1].map { DatabaseStatement($0) }
            if try attempt(link, [note] + step) { made.append(version) }
        }
        throw JournalError(
            .busy,
            "other migrations were in the way",
            next: "run portcullis store migrate again when no other one runs"
        )
    }

    /// Runs statements as one transaction; false when another migration made the same step.
    private static func attempt(
        _ link: DatabaseLink,
        _ statements: [DatabaseStatement]
    ) throws(JournalError) -> Bool {
        do throws(JournalError) {
            _ = try link.ask(statements)
            return true
        } catch {
            // Unique violation, in PostgreSQL's own tables too; a table or object that exists.
            let others = ["23505", "42P07", "42710"]
            guard others.contains(where: { error.detail.contains("SQLSTATE \($0))") }) else {
                throw error
            }
            return false
        }
    }
}
