internal import Cryptography
internal import Foundation
internal import GRDB
internal import KeyStore

/// The secrets that outlast the process. They are in the database alone, whose files nobody but
/// their owner can read, and in copies of it.
enum StoreSecrets {
    /// The key of the enrolment challenges' codes, 32 bytes: drawn where there is none.
    ///
    /// - `isRedrawn`: draw another one, so that no challenge from before is good.
    static func enrolment(_ db: Database, isRedrawn: Bool) throws -> [UInt8] {
        let fresh = Data(RandomOctets.make(count: 32))
        let conflict = isRedrawn ? "REPLACE" : "IGNORE"
        try db.execute(
            sql: "INSERT OR \(conflict) INTO secrets (name, secret) VALUES ('enrolment', ?)",
            arguments: [fresh]
        )
        let select = "SELECT secret FROM secrets WHERE name = 'enrolment'"
        guard let secret = try Data.fetchOne(db, sql: select), secret.count == 32 else {
            throw JournalError(.damaged, "the secret of the enrolment challenges is not 32 bytes")
        }
        return Array(secret)
    }
}
