import AppAttest
import Expectations
import GRDB
import KeyStore
import Testing

@testable import SQLiteKeyStore

@Suite struct CounterMergeTests {
    @Test func `SQLite merges counters as memory does`() throws {
        let database = try DatabaseQueue()
        try database.write { db in
            try db.execute(
                sql: "CREATE TABLE t (counter INTEGER NOT NULL, counter_window INTEGER NOT NULL)"
            )
            let highest: [UInt32] = [0, 1, 2, 63, 64, 65, 66, 129, 1_000, .max - 1, .max]
            let seen: [UInt64] = [0, 1, 2, 0x8000_0000_0000_0000, 0xF0F0, .max, .max >> 1]
            let states = highest.flatMap { highest in
                seen.map { CounterState(highest: SignCounter(rawValue: highest), seen: $0) }
            }
            let merge = KeySchema.merge(counter: "?1", window: "?2")
            for left in states {
                for right in states {
                    try db.execute(
                        sql: "DELETE FROM t; INSERT INTO t VALUES (?, ?)",
                        arguments: values(left)
                    )
                    try db.execute(sql: "UPDATE t SET \(merge)", arguments: values(right))
                    var expected = left
                    expected.merge(right)
                    let row = try #require(try Row.fetchOne(db, sql: "SELECT * FROM t"))
                    let found = try SQLiteRow(row).counters(from: 0)
                    expectEqual(found, expected, "\(left) and \(right)")
                }
            }
        }
    }

    private func values(_ state: CounterState) -> StatementArguments {
        [Int64(state.highest.rawValue), Int64(bitPattern: state.seen)]
    }
}
