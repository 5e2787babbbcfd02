import Expectations
import Foundation
import Rules
import Telemetry
import Testing
import Verification

@testable import Services

@Suite struct ReportLedgerTests {
    private struct Sum: Mergeable, Equatable {
        var value = 0

        init() {}
        init(_ value: Int) { self.value = value }

        mutating func merge(_ other: Sum) { value += other.value }
    }

    @Test func `a slot ages out when its window has passed`() {
        var ring = SlotRing<Sum>(slotSeconds: 10, slotsMax: 3)
        for (now, value) in [(100, 1), (109, 2), (110, 4), (125, 8)] as [(Int64, Int)] {
            ring.add(Sum(value), at: now)
        }
        expectEqual(ring.sum(at: 125), Sum(15))
        // Three slots that have ended, and the one of the moment.
        expectEqual(ring.sum(at: 139), Sum(15))
        expectEqual(ring.sum(at: 140), Sum(12))
        expectEqual(ring.sum(at: 150), Sum(8))
        expectEqual(ring.sum(at: 160), Sum())
        expectEqual(ring.slots(at: 125).map(\.number), [10, 11, 12])
        expectEqual(ring.coverage(at: 139, since: 0), 39)
        expectEqual(ring.coverage(at: 140, since: 0), 30)
        expectEqual(ring.coverage(at: 140, since: 135), 5)
    }

    @Test func `a clock that jumps forward empties the ring, one that goes back loses nothing`() {
        var ring = SlotRing<Sum>(slotSeconds: 10, slotsMax: 3)
        ring.add(Sum(1), at: 100)
        ring.add(Sum(2), at: 95)
        expectEqual(ring.sum(at: 100), Sum(3))
        expectEqual(ring.sum(at: 90), Sum(3))
        ring.add(Sum(4), at: 1_000_000_000)
        expectEqual(ring.slots(at: 1_000_000_000).map(\.content), [Sum(4)])
        ring.add(Sum(8), at: 200)
        expectEqual(ring.slots(at: 1_000_000_000).map(\.content), [Sum(12)])
    }

    private func entry(_ rule: String, _ requests: [ReportedRequest]) -> ReportCounts.Entry {
        ReportCounts.Entry(rule: rule, counts: RuleCounts(requests))
    }

    @Test func `each window forgets at its own time, and says what it covers`() {
        var ledger = ReportLedger(startedAt: 50)
        ledger.add([entry("orders", [.signed(1)])], at: 60)
        func seen(_ now: Int64) -> [UInt64] {
            ReportWindow.allCases.map { ledger.counts(of: "orders", $0, at: now).requests }
        }
        expectEqual(seen(60), [1, 1, 1])
        expectEqual(seen(60 + 360), [0, 1, 1])
        expectEqual(seen(4200), [0, 0, 1])
        expectEqual(seen(60 + 26 * 3600), [0, 0, 0])
        expectEqual(ReportWindow.allCases.map { ledger.coverage($0, at: 110) }, [60, 60, 60])
        expectEqual(
            ReportWindow.allCases.map { ledger.coverage($0, at: 1_000_030) },
            [310, 4030, 92_830]
        )
    }

    @Test func `loops add up, also when one answers late`() {
        var ledger = ReportLedger(startedAt: 0)
        ledger.add([entry("orders", [.signed(1), .signed(2)])], at: 100)
        ledger.add([entry("orders", [.signed(2), .bare(1)])], at: 100)
        ledger.add([entry("orders", [.signed(3)])], at: 110)
        let counts = ledger.counts(of: "orders", .fiveMinutes, at: 111)
        expectEqual(counts.requests, 5)
        // Two of them may share a register.
        #expect((2...3).contains(counts.installCount))
        let series = ledger.series(of: "orders", .fiveMinutes, at: 111)
        expectEqual(series.map(\.beganAt), [100, 110])
        expectEqual(series.map { $0.point.counts }, [[3, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]])
        expectEqual(series.first?.point.mean, 0.001)
    }

    @Test func `the percentiles of all rules are those of their requests together`() throws {
        var ledger = ReportLedger(startedAt: 1_000)
        // Of a hundred requests of two rules, 96 take a millisecond, and 4 take a second.
        func entry(_ rule: String, _ count: Int, milliseconds: UInt64) -> ReportCounts.Entry {
            var counts = RuleCounts()
            for _ in 0..<count { counts.add(nanoseconds: milliseconds * 1_000_000) }
            return ReportCounts.Entry(rule: rule, counts: counts)
        }
        ledger.add([entry("quick", 90, milliseconds: 1)], at: 1_010)
        ledger.add([entry("slow", 6, milliseconds: 1)], at: 1_011)
        ledger.add([entry("slow", 4, milliseconds: 1_000)], at: 1_012)
        let facts = ["quick", "slow"].map {
            RuleFacts(id: $0, mode: "observe", rollout: "100% by key", origin: "shop")
        }
        let report = Report(ledger, of: facts, ReportScope(), at: (1_000, 1_015, 1_015))
        let json = try JSONSerialization.jsonObject(with: Data(report.seriesJSON))
        let series = try #require(json as? [String: Any])
        func percentiles(_ place: Any?) throws -> [Double] {
            let all = (place as? [String: Any])?["series"] as? [[String: Any]]
            let rows = try #require(all?.first?["rows"] as? [[Double]])
            expectEqual(rows.count, 1)
            return Array(rows[0].suffix(3))
        }
        let (short, long) = (Double(1_048_575) * 1e-9, Double(1_073_741_823) * 1e-9)
        try expectEqual(percentiles(series["all"]), [short, short, long])
        let rules = try #require(series["rules"] as? [[String: Any]])
        try expectEqual(percentiles(rules[0]), [short, short, short])
        try expectEqual(percentiles(rules[1]), [short, long, long])
    }

    @Test func `a removed rule keeps its numbers until they age, and removed rules are bounded`() {
        var ledger = ReportLedger(startedAt: 0)
        for number in 0..<100 {
            ledger.add([entry("old-\(number)", [.signed(1)])], at: Int64(number))
        }
        ledger.add([entry("orders", [.signed(1)])], at: 0)
        ledger.tidy(serving: ["orders"], at: 100)
        let others = ledger.others(than: ["orders"])
        expectEqual(others.count, ReportLedger.removedMax)
        #expect(others.contains("old-99") && !others.contains("old-0"))
        expectEqual(ledger.counts(of: "orders", .day, at: 100).requests, 1)
        ledger.tidy(serving: ["orders"], at: 200_000)
        #expect(ledger.others(than: []).isEmpty)
    }

    private func rules(_ ids: [String]) throws -> RuleSet {
        let rules = ids.enumerated().map { number, id in
            Rule(id: id, index: number, match: .all, origin: nil, mode: .deny)
        }
        return try #require(RuleSet(Array(rules.dropLast()), default: rules[rules.count - 1]))
    }

    @Test func `a request that outlives a reload counts for the rule that it began with`() throws {
        let (first, second) = (try rules(["a", "b", "default"]), try rules(["b", "default"]))
        var counts = ReportCounts(first)
        counts.add(.signed(1), nanoseconds: 1, of: first.rules[0])
        counts.add(.signed(1), nanoseconds: 1, of: first.rules[1])
        counts.serve(second)
        // Number 0 is `b` by now.
        counts.add(.signed(2), nanoseconds: 1, of: first.rules[0])
        counts.add(.signed(2), nanoseconds: 1, of: first.rules[2])
        counts.add(nil, nanoseconds: 1, of: second.rules[0])
        let taken = counts.take()
        let byRule = Dictionary(uniqueKeysWithValues: taken.map { ($0.rule, $0.counts) })
        expectEqual(byRule.mapValues(\.requests), ["a": 2, "b": 1, "default": 1])
        expectEqual(byRule["b"]?.times.count, 2)
        #expect(counts.take().isEmpty)
    }

    @Test func `a report has the rules in their order, then those that are gone`() throws {
        var ledger = ReportLedger(startedAt: 1000)
        ledger.add([entry("gone", [.bare(1, claimed: "7")]), entry("b", [.signed(1)])], at: 1010)
        let facts = ["b", "a"].map {
            RuleFacts(id: $0, mode: "enforce", rollout: "25% by key", origin: "shop")
        }
        func report(_ scope: ReportScope = ReportScope()) -> Report {
            Report(ledger, of: facts, scope, at: (1_776_679_200, 1_776_679_215, 1015))
        }
        expectEqual(report().entries.map(\.id), ["b", "a", "gone"])
        expectEqual(report(ReportScope(rule: "gone")).entries.map(\.id), ["gone"])
        #expect(report(ReportScope(rule: "nobody")).entries.isEmpty)
        let lines = report(ReportScope(windows: [.hour])).text.split(separator: "\n")
        #expect(lines[0].hasPrefix("counted since 2026-04-20T10:00:00Z; "))
        expectEqual(lines[1], "b: enforce, 25% by key")
        expectEqual(lines[2], "  last hour (15 s): 1 judged requests, 1 installs, 0 refused")
        #expect(lines.contains("a: enforce, 25% by key"))
        #expect(lines.contains("  last hour (15 s): no requests"))
        #expect(lines.contains("gone: removed by a reload"))
        #expect(lines.contains("    enforce at  would refuse  of requests  installs  addresses"))
        #expect(lines.contains("    100%                   1      100.00%         0          1"))
        #expect(lines.contains { $0.hasPrefix("    7 (claimed)         none         0        1") })
        let series = try #require(
            try JSONSerialization.jsonObject(with: Data(report().seriesJSON)) as? [String: Any]
        )
        let figures = ["refused", "mean", "p50", "p95", "p99"]
        let columns = ["at"] + VerdictClass.allCases.map(\.rawValue) + figures
        #expect(series["columns"] as? [String] == columns)
        let rules = try #require(series["rules"] as? [[String: Any]])
        let first = try #require((rules[0]["series"] as? [[String: Any]])?.first)
        // A percentile is the upper end of its bucket: 2²⁰ ns.
        let bound = Double(1_048_575) * 1e-9
        let times = [0.001, bound, bound, bound]
        let rows = try #require(first["rows"] as? [[Double]])
        let row: [Double] = [1_776_679_210, 1, 0, 0, 0, 0, 0, 0] + times
        expectEqual(rows, [row])
    }
}
