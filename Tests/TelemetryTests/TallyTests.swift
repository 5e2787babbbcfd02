import Expectations
import Telemetry
import Testing

@Suite struct TallyTests {
    @Test func `merged tallies add up`() {
        var one = Tally(ruleCount: 2, verdictSlots: 3)
        var two = Tally(ruleCount: 3, verdictSlots: 3)
        one.add(.requests)
        two.add(.requests, 4)
        one.addVerdict(rule: 1, slot: 2)
        two.addVerdict(rule: 1, slot: 2)
        two.addVerdict(rule: 2, slot: 0)
        two.addStatus(204)
        one.merge(two)
        expectEqual(one[.requests], 5)
        expectEqual(one.verdicts(rule: 1, slot: 2), 2)
        expectEqual(one.verdicts(rule: 2, slot: 0), 1)
        expectEqual(one.statusCounts.map(\.status), [204])
    }

    @Test func `a verdict of a rule that is gone is not counted`() {
        var tally = Tally(ruleCount: 1, verdictSlots: 2)
        tally.addVerdict(rule: 7, slot: 0)
        tally.addVerdict(rule: 0, slot: 9)
        expectEqual(tally.verdicts(rule: 7, slot: 0), 0)
    }

    @Test(arguments: [Int.max, .max / 2 + 1, -1, .min])
    func `the number of a rule that is in no rule set stops nothing`(number: Int) {
        var tally = Tally(ruleCount: 2, verdictSlots: 3)
        tally.addVerdict(rule: number, slot: 1)
        tally.addCutShort(rule: number, isPassed: true)
        expectEqual(tally.verdicts(rule: number, slot: 1), 0)
        expectEqual(tally.cutShort(rule: number, isPassed: true), 0)
        for rule in 0..<2 { expectEqual(tally.verdicts(rule: rule, slot: 1), 0) }
    }

    @Test func `verdicts stay with their rule when a reload renumbers it`() {
        var tally = Tally(ruleCount: 2, verdictSlots: 2)
        tally.addVerdict(rule: 0, slot: 1)
        tally.addVerdict(rule: 1, slot: 0)
        tally.addFirstByte(rule: 0, nanoseconds: 5)
        tally.renumber([nil, 0])
        expectEqual((0..<3).map { tally.times(.origin, rule: $0).count }, [0, 1, 0])
        #expect(tally.verdicts(rule: 0, slot: 0) == 0 && tally.verdicts(rule: 0, slot: 1) == 0)
        expectEqual(tally.verdicts(rule: 1, slot: 1), 1)
    }

    @Test func `cumulative counts say how many values are at or below each bound`() {
        var histogram = Histogram()
        for value in [1, 3, 1000, 1000, UInt64.max] as [UInt64] { histogram.add(value) }
        let counts = histogram.cumulative
        expectEqual(counts.count, Histogram.shownBuckets.count)
        expectEqual(counts.first.map { $0.bound == 1 && $0.count == 1 }, true)
        expectEqual(counts.first { $0.bound >= 1000 }?.count, 4)
        // Above the last bound there is what is in none.
        expectEqual(counts.last?.count, 4)
        #expect(zip(counts, counts.dropFirst()).allSatisfy { $0.bound < $1.bound })
        #expect(zip(counts, counts.dropFirst()).allSatisfy { $0.count <= $1.count })
    }

    @Test func `a quantile is at most half above the value`() {
        for value in [UInt64(1), 2, 3, 5, 100, 61_000, 1 << 40] {
            var histogram = Histogram()
            histogram.add(value)
            let quantile = histogram.quantile(0.99)
            #expect(quantile >= value && Double(quantile) <= Double(value) * 1.5)
        }
        expectEqual(Histogram().quantile(0.5), 0)
    }

    @Test func `labels are escaped`() {
        var exposition = Exposition()
        exposition.sample("x_total", labels: [("rule", "a\"b\\c\nd")], 1)
        expectEqual(exposition.text, "portcullis_x_total{rule=\"a\\\"b\\\\c\\nd\"} 1\n")
    }

    @Test func `a histogram's buckets are cumulative and end at infinity`() {
        var histogram = Histogram()
        histogram.add(1_000)
        histogram.add(1_000_000)
        var exposition = Exposition()
        exposition.histogram("x_seconds", histogram, unit: 1e-9)
        #expect(exposition.text.contains("x_seconds_bucket{le=\"+Inf\"} 2"))
        #expect(exposition.text.contains("x_seconds_count 2"))
    }
}
