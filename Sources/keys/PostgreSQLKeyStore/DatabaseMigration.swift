internal import Foundation
package import KeyStore

/// How far the tables have come, and how they are brought to this version.
package enum DatabaseMigration {
    /// The tables as they are.
    struct State {
        /// 0 where there are none.
        var version: Int64
        /// The lowest version whose program can use them.
        var oldestReader: Int64

        /// - Throws: that this program can't use them, and what to do.
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
            guard let rows = try connection.run([select], until: deadline).first, rows.count == 1
            else { return State(version: 0, oldestReader: 0) }
            do throws(JournalError) {
                return State(
                    version: try rows.present(0, 0),
                    oldestReader: try rows.present(0, 1)
                )
            } catch {
                throw DatabaseFault.lost(error.detail)
            }
        } catch {
            guard case .refused("42P01", _) = error else { throw error }
            return State(version: 0, oldestReader: 0)
        }
    }

    /// Makes the steps that are missing, each in a transaction of its own. Two that run side by
    /// side make each step once: the second fails at the note of the step, and nothing is changed.
    ///
    /// - Returns: the versions that were made.
    package static func run(_ settings: PostgreSQLSettings) throws(JournalError) -> [Int64] {
        let link = DatabaseLink(settings)
        defer { link.close() }
        _ = try link.ask([DatabaseStatement(DatabaseSchema.begin)])
        let before = try link.run { (connection) throws(DatabaseFault) in try state(connection) }
        var made: [Int64] = []
        for version in stride(from: before.version + 1, through: DatabaseSchema.version, by: 1) {
            let note = DatabaseStatement(
                "INSERT INTO schema_steps (version, oldest_reader, made_at) VALUES ($1, $2, $3)",
                [.number(version), .number(1), .number(Int64(Date().timeIntervalSince1970))]
            )
            let step = DatabaseSchema.steps[Int(version) - 1].map { DatabaseStatement($0) }
            _ = try link.ask([note] + step)
            made.append(version)
        }
        return made
    }
}
