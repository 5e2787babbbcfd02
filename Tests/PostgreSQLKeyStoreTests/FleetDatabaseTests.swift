import Dispatch
import Expectations
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
            rule: rule,
            from: "enforce",
            to: "observe",
            note: .init(at: 7, by: "uid 0", why: "", gateway: "g1")
        )
    }

    @Test func `an order replaces the one that its writer has read, and no other`() throws {
        try expectEqual(database.reading(after: 0).version, 0)
        let first = change(1)
        #expect(try database.set("a", first, replacing: 0))
        #expect(try !database.set("b", change(1), replacing: 0))
        #expect(try database.set("c", change(2, rule: nil), replacing: 1))
        let reading = try database.reading(after: 1)
        #expect(reading.version == 2 && reading.orders == "c")
        expectEqual(reading.changes.map(\.version), [2])
        expectEqual(reading.changes[0].rule, nil)
        try expectEqual(database.reading(after: 2).orders, nil)
        let all = try database.lastChanges(atMost: 9)
        expectEqual(all.map(\.version), [1, 2])
        expectEqual(all[0].ticket, first.ticket)
        try expectEqual(database.lastChanges(atMost: 1).map(\.version), [2])
    }

    /// A row may be anybody's who can write to the database. `fleet upgrade` hands names to `ssh`.
    @Test func `rows with what is no name are left out, and texts are one line`() throws {
        let bad = ["-oProxyCommand=touch x", "g\u{1B}]0;x\u{7}", "a b", "", "g\n", "g;reboot"]
        for (number, name) in (["g1"] + bad).enumerated() {
            var member = FleetMember(
                instance: Int64(number + 1),
                name: name,
                program: "1\u{1B}[2J\n",
                startedAt: 0
            )
            member.address = "a\tb\u{202E}"
            member.standing = "serving\r"
            _ = try database.poll(member, after: 0)
            try database.drain(FleetDrain(name: name, at: 1, by: "uid\u{9B}0", why: "why\nnot"))
        }
        let reading = try database.reading(after: 0)
        expectEqual(reading.members.map(\.name), ["g1"])
        expectEqual(reading.drains.map(\.name), ["g1"])
        expectEqual(reading.unnamed, bad.count * 2)
        let member = reading.members[0]
        expectEqual(member.program, "1\u{FFFD}[2J\u{FFFD}")
        expectEqual(member.address, "a\u{FFFD}b\u{FFFD}")
        expectEqual(member.standing, "serving\u{FFFD}")
        expectEqual(reading.drains[0].by, "uid\u{FFFD}0")
        expectEqual(reading.drains[0].why, "why\u{FFFD}not")
        let question = try database.ask(.report, by: 99)
        expectEqual(try database.answers(to: question, by: 99).map(\.name), ["g1"])
        let change = FleetChange(
            version: 1,
            rule: "r\n",
            from: "\u{7}",
            to: "\u{2028}",
            note: .init(
                at: 7,
                by: "\u{1B}",
                why: String(repeating: "w", count: 4_000),
                gateway: "\u{1B}c"
            )
        )
        #expect(try database.set("a", change, replacing: 0))
        let told = try #require(try database.lastChanges(atMost: 1).first)
        expectEqual(
            [told.note.by, told.rule ?? "", told.from, told.to, told.note.gateway],
            ["\u{FFFD}", "r\u{FFFD}", "\u{FFFD}", "\u{FFFD}", "\u{FFFD}c"]
        )
        expectEqual(told.note.why.count, 512)
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
            try expectEqual(database.reading(after: 0).version, version + 1)
        }
        expectEqual(wins.withLock { $0 }, 20)
    }

    @Test func `a gateway reads what the others have counted, and all share one secret`() throws {
        let member = { FleetMember(instance: $0, name: "g", program: "1", startedAt: 0) }
        func count(_ slot: Int64, _ passed: [UInt8]) -> FleetCount {
            FleetCount(
                rule: "orders",
                slot: slot,
                span: 300,
                since: 4,
                sketches: .init(passed: passed, refused: [], broken: [2])
            )
        }
        var exchange = FleetExchange()
        exchange.wantsSecret = true
        exchange.counts = [count(7, [1]), count(8, [1])]
        let first = try database.poll(member(1), after: 0, exchange)
        expectEqual(first.secret?.count, 32)
        #expect(first.counts.isEmpty)
        exchange.counts = [count(8, [3])]
        _ = try database.poll(member(1), after: 0, exchange)
        exchange.counts = []
        let second = try database.poll(member(2), after: 0, exchange)
        expectEqual(second.secret, first.secret)
        #expect(second.now > 1_700_000_000)
        expectEqual(Set(second.counts.map(\.slot)), [7, 8])
        let last = try #require(second.counts.first { $0.slot == 8 })
        #expect(last.rule == "orders" && last.sketches.passed == [3] && last.sketches.refused == [])
        #expect(last.sketches.broken == [2] && last.since == 4 && last.span == 300)
        // What was written long ago is known, and what no window has goes.
        let link = DatabaseLink(settings)
        defer { link.close() }
        _ = try link.ask([DatabaseStatement("UPDATE guard_counts SET written_at = 0")])
        exchange.readAt = second.now
        #expect(try database.poll(member(2), after: 0, exchange).counts.isEmpty)
        _ = try link.ask([DatabaseStatement("UPDATE guard_counts SET ends_at = 0")])
        _ = try database.poll(member(2), after: 0, exchange)
        let rows = try link.ask([DatabaseStatement("SELECT count(*) FROM guard_counts")])
        try expectEqual(rows.first?[0].present(0), 0)
    }

    @Test func `what gateways take of a limit adds up, and none waits for another`() throws {
        let member = { FleetMember(instance: $0, name: "g", program: "1", startedAt: 0) }
        var exchange = FleetExchange()
        exchange.readAt = 1
        // One subject twice: an event loop has had a slot of its own.
        exchange.uses = [
            FleetUse(limit: 1, subject: -7, micros: 60_000_000),
            FleetUse(limit: 1, subject: -7, micros: 60_000_000),
            FleetUse(limit: 3, subject: -7, micros: 5_000_000),
        ]
        func levels(_ reading: FleetReading) -> [Int64: Int64] {
            // Seconds, rounded up: some time passes.
            Dictionary(
                uniqueKeysWithValues: reading.levels.map {
                    ($0.limit, ($0.fullIn + 9_999_999) / 10_000_000 * 10)
                }
            )
        }
        let first = try database.poll(member(1), after: 0, exchange)
        #expect(levels(first) == [1: 120, 3: 10] && first.unwritten.isEmpty)
        exchange.uses = [FleetUse(limit: 1, subject: -7, micros: .max)]
        #expect(try database.poll(member(2), after: 0, exchange).unwritten.isEmpty)
        let link = DatabaseLink(settings)
        defer { link.close() }
        _ = try link.ask([
            DatabaseStatement("UPDATE fleet_limits SET full_at = 0 WHERE kind = 1")
        ])
        exchange.uses[0] = FleetUse(limit: 1, subject: -7, micros: 30_000_000)
        let second = try database.poll(member(2), after: 0, exchange)
        expectEqual(levels(second)[1], 30, "a bucket is not more than full")

        // A gateway that stops in the middle of its transaction.
        _ = try link.ask([DatabaseStatement("BEGIN")])
        _ = try link.ask([DatabaseStatement("UPDATE fleet_limits SET full_at = 0")])
        exchange.uses.append(FleetUse(limit: 2, subject: 5, micros: 9_000_000))
        exchange.readAt = 60
        let third = try database.poll(member(2), after: 0, exchange)
        expectEqual(third.unwritten, [exchange.uses[0]])
        expectEqual(levels(third), [1: 30, 2: 10, 3: 10])
        _ = try link.ask([DatabaseStatement("COMMIT")])
        exchange.uses = []
        expectEqual(levels(try database.poll(member(2), after: 0, exchange)), [2: 10])
    }

    @Test func `limits go on where the clock of the next server is behind`() throws {
        let member = FleetMember(instance: 1, name: "g", program: "1", startedAt: 0)
        func levels(_ rate: Int64, _ attester: Int64) throws -> [Int64: Int64] {
            var exchange = FleetExchange()
            exchange.readAt = 1
            let uses = [
                FleetUse(limit: 1, subject: 5, micros: rate),
                FleetUse(limit: 3, subject: 5, micros: attester),
            ]
            exchange.uses = uses.filter { $0.micros > 0 }
            let reading = try database.poll(member, after: 0, exchange)
            #expect(reading.unwritten.isEmpty)
            let seconds = reading.levels.map { ($0.limit, $0.fullIn / 1_000_000) }
            return Dictionary(uniqueKeysWithValues: seconds)
        }
        try expectEqual(levels(3_000_000, 50_000_000_000).count, 2)
        let link = DatabaseLink(settings)
        defer { link.close() }
        // Ten minutes.
        _ = try link.ask([
            DatabaseStatement(
                """
                UPDATE fleet_limits SET written_at = written_at + 600,
                    full_at = full_at + 600000000
                """
            )
        ])
        #expect(try levels(0, 0).isEmpty)
        // What was taken is not forgotten.
        let next = try levels(1_000_000, 1_000_000)
        let (rate, attester) = (try #require(next[1]), try #require(next[3]))
        #expect((1...10).contains(rate))
        #expect((49_900...50_100).contains(attester))
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
        expectEqual(members.map(\.name), ["a", "b"])
        #expect(members[0].orders == 5 && members[0].rulesDigest == [1, 2])
        #expect(members.allSatisfy { (0...5).contains($0.age) })
        // A process of the same name replaces one that has been silent.
        let next = FleetMember(instance: 3, name: "a", program: "3", startedAt: 10)
        try expectEqual(database.poll(next, after: 0).members.count, 3)
        let link = DatabaseLink(settings)
        _ = try link.ask([DatabaseStatement("UPDATE gateways SET seen_at = seen_at - 60")])
        link.close()
        try expectEqual(database.poll(next, after: 0).members.map(\.instance), [3, 2])
    }

    @Test func `a question is answered by all that are there, and of others the last word counts`()
        throws
    {
        func member(_ instance: Int64, _ name: String) -> FleetMember {
            FleetMember(instance: instance, name: name, program: "1", startedAt: 0)
        }
        for (instance, name) in [(1, "a"), (2, "b"), (3, "c")] as [(Int64, String)] {
            _ = try database.poll(member(instance, name), after: 0)
            try database.answer(FleetQuestion(id: 0, about: .refusals), [9], by: instance)
        }
        let question = try database.ask(.named("x"), by: 1)
        #expect(try database.poll(member(1, "a"), after: 0).questions.isEmpty)
        let read = try database.poll(member(2, "b"), after: 0).questions
        #expect(read.map(\.id) == [question.id] && read.map(\.about) == [.named("x")])
        #expect(try database.awaits(question, by: 1))
        try database.answer(read[0], [5], by: 2)
        #expect(try database.awaits(question, by: 1))
        let link = DatabaseLink(settings)
        defer { link.close() }
        // One that is silent is not waited for.
        _ = try link.ask([
            DatabaseStatement("UPDATE gateways SET seen_at = seen_at - 60 WHERE instance = 3")
        ])
        #expect(try !database.awaits(question, by: 1))
        let answers = try database.answers(to: question, by: 1)
        expectEqual(answers.map(\.name), ["b", "c"])
        expectEqual(answers.map(\.bytes), [[5], [9]])
        expectEqual(answers.map(\.isToQuestion), [true, false])
        #expect(answers.allSatisfy { (0...5).contains($0.age) && !$0.hasEnded })
        // What has ended is asked nothing, and its last word counts, too.
        try database.end(2)
        let next = try database.ask(.report, by: 1)
        #expect(try !database.awaits(next, by: 1))
        try expectEqual(database.answers(to: next, by: 1).map(\.hasEnded), [true, false])
        #expect(try database.answers(to: next, by: 1).allSatisfy { $0.bytes == nil })
        // A poll that was under way says nothing of an ended process, and its name is free at once.
        _ = try database.poll(member(2, "b"), after: 0)
        try expectEqual(database.reading(after: 0).members.map(\.standing), ["", "ended", ""])
        let members = try database.poll(member(4, "b"), after: 0).members
        expectEqual(members.map(\.instance), [1, 4, 3])
        // What is over goes, also where no operator asks again.
        _ = try link.ask([
            DatabaseStatement("UPDATE fleet_questions SET ends_at = 0"),
            DatabaseStatement("UPDATE fleet_answers SET ends_at = 0"),
        ])
        _ = try database.poll(member(1, "a"), after: 0)
        let counts = try link.ask([
            DatabaseStatement("SELECT count(*) FROM fleet_questions"),
            DatabaseStatement("SELECT count(*) FROM fleet_answers"),
        ])
        #expect(try counts[0][0].present(0) == 0 && counts[1][0].present(0) == 0)
    }
}
