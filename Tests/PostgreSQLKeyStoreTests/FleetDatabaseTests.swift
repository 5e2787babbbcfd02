import Dispatch
import KeyStore
import LoopbackKit
import Synchronization
import Testing

@testable import PostgreSQLKeyStore

/// The orders of a fleet, and its gateways, as rows.
@Suite struct FleetDatabaseTests {
    private let settings: PostgreSQLSettings
    private let database: FleetDatabase

    init() throws {
        settings = try DatabaseServer.shared.get().makeStore()
        database = FleetDatabase(settings)
    }

    private func change(_ version: Int64, rule: String? = "orders") -> FleetChange {
        FleetChange(
            version: version,
            at: 7,
            by: "uid 0",
            why: "",
            rule: rule,
            from: "enforce",
            to: "observe",
            gateway: "g1"
        )
    }

    @Test func `an order replaces the one that its writer has read, and no other`() throws {
        #expect(try database.reading(after: 0).version == 0)
        let first = change(1)
        #expect(try database.set("a", first, replacing: 0))
        #expect(try !database.set("b", change(1), replacing: 0))
        #expect(try database.set("c", change(2, rule: nil), replacing: 1))
        let reading = try database.reading(after: 1)
        #expect(reading.version == 2 && reading.orders == "c")
        #expect(reading.changes.map(\.version) == [2])
        #expect(reading.changes[0].rule == nil)
        #expect(try database.reading(after: 2).orders == nil)
        let all = try database.lastChanges(atMost: 9)
        #expect(all.map(\.version) == [1, 2])
        #expect(all[0].ticket == first.ticket)
        #expect(try database.lastChanges(atMost: 1).map(\.version) == [2])
    }

    @Test func `of writers at the same moment one wins`() throws {
        let databases = (0..<6).map { _ in FleetDatabase(settings) }
        let wins = Mutex(0)
        for version in Int64(0)..<20 {
            DispatchQueue.concurrentPerform(iterations: databases.count) { number in
                let isSet = try? databases[number].set(
                    "\(number)",
                    change(version + 1),
                    replacing: version
                )
                if isSet == true { wins.withLock { $0 += 1 } }
            }
            #expect(try database.reading(after: 0).version == version + 1)
        }
        #expect(wins.withLock { $0 } == 20)
    }

    @Test func `a gateway reads what the others have counted, and all share one secret`() throws {
        let member = { FleetMember(instance: $0, name: "g", program: "1", startedAt: 0) }
        func count(_ slot: Int64, _ passed: [UInt8]) -> FleetCount {
            FleetCount(
                rule: "orders",
                slot: slot,
                span: 300,
                since: 4,
                passed: passed,
                refused: [],
                broken: [2]
            )
        }
        var exchange = FleetExchange()
        exchange.wantsSecret = true
        exchange.counts = [count(7, [1]), count(8, [1])]
        let first = try database.poll(member(1), after: 0, exchange)
        #expect(first.secret?.count == 32)
        #expect(first.counts.isEmpty)
        exchange.counts = [count(8, [3])]
        _ = try database.poll(member(1), after: 0, exchange)
        exchange.counts = []
        let second = try database.poll(member(2), after: 0, exchange)
        #expect(second.secret == first.secret)
        #expect(second.now > 1_700_000_000)
        #expect(Set(second.counts.map(\.slot)) == [7, 8])
        let last = try #require(second.counts.first { $0.slot == 8 })
        #expect(last.rule == "orders" && last.passed == [3] && last.refused == [])
        #expect(last.broken == [2] && last.since == 4 && last.span == 300)
        // What was written long ago is known, and what no window has goes.
        let link = DatabaseLink(settings)
        defer { link.close() }
        _ = try link.ask([DatabaseStatement("UPDATE guard_counts SET written_at = 0")])
        exchange.readAt = second.now
        #expect(try database.poll(member(2), after: 0, exchange).counts.isEmpty)
        _ = try link.ask([DatabaseStatement("UPDATE guard_counts SET ends_at = 0")])
        _ = try database.poll(member(2), after: 0, exchange)
        let rows = try link.ask([DatabaseStatement("SELECT count(*) FROM guard_counts")])
        #expect(try rows.first?.present(0, 0) == 0)
    }

    @Test func `gateways see each other, by the clock of the database`() throws {
        var first = FleetMember(instance: 1, name: "a", program: "1", startedAt: -9)
        let second = FleetMember(instance: 2, name: "b", program: "2", startedAt: 9)
        _ = try database.poll(first, after: 0)
        first.orders = 5
        first.standing = "serving"
        first.rulesDigest = [1, 2]
        _ = try database.poll(first, after: 0)
        let members = try database.poll(second, after: 0).members
        #expect(members.map(\.name) == ["a", "b"])
        #expect(members[0].orders == 5 && members[0].rulesDigest == [1, 2])
        #expect(members.allSatisfy { (0...5).contains($0.age) })
        // A process of the same name replaces one that has been silent.
        let next = FleetMember(instance: 3, name: "a", program: "3", startedAt: 10)
        #expect(try database.poll(next, after: 0).members.count == 3)
        let link = DatabaseLink(settings)
        _ = try link.ask([DatabaseStatement("UPDATE gateways SET seen_at = seen_at - 60")])
        link.close()
        #expect(try database.poll(next, after: 0).members.map(\.instance) == [3, 2])
    }
}
