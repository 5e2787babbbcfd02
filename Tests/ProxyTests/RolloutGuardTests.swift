import AppAttest
import Expectations
import Rules
import Telemetry
import Testing
import Verification

@testable import Proxy

/// What makes a rule fall back to `observe`. Transcripts of the counts of an event loop and of the
/// machine that gathers them. The numbers are estimates, and hash values differ in each run: what
/// is allowed is four standard deviations at least.
@Suite struct RolloutGuardTests {
    private static let rules: RuleSet? = {
        var guarded = Rule.Demands(salt: "orders", mode: .enforce)
        guarded.fallback = GuardRule(refused: .none)
        let orders = Rule(
            id: "orders",
            index: 0,
            match: .all,
            origin: OriginIndex(0),
            demands: guarded
        )
        let plain = Rule(id: "p", index: 1, match: .all, origin: OriginIndex(0), mode: .enforce)
        return RuleSet(
            [orders, plain],
            default: Rule(id: "default", index: 2, match: .all, origin: nil, mode: .deny)
        )
    }()

    /// An event loop that sees installs by their number.
    private struct Sight {
        let rules: RuleSet
        var counts: GuardCounts

        init() throws {
            rules = try #require(RolloutGuardTests.rules)
            counts = GuardCounts(rules)
        }

        /// - known: whether the keys are enrolled.
        mutating func see(
            _ installs: Range<Int>,
            _ outcome: Verdict.Outcome,
            known: Bool = true,
            rule: Int = 0,
            isExcused: Bool = false
        ) throws {
            for install in installs {
                let bytes = (0..<32).map { UInt8(truncatingIfNeeded: install >> ($0 % 4 * 8)) }
                var verdict = Verdict(outcome, keyID: KeyID(bytes: bytes))
                verdict.isExcused = isExcused
                counts.count(rules.rules[rule], verdict) { known }
            }
        }
    }

    private func watch(_ percent: String, minimum: Int = 100) throws -> RolloutGuard {
        var rule = GuardRule(refused: try #require(Share(percent: percent)))
        rule.minimum = minimum
        return RolloutGuard(rule)
    }

    /// The machine after what an event loop has seen.
    private func watch(
        _ percent: String,
        minimum: Int = 100,
        _ play: (inout Sight) throws -> Void
    ) throws -> RolloutGuard {
        var (watch, sight) = (try watch(percent, minimum: minimum), try Sight())
        try play(&sight)
        for entry in sight.counts.take() { watch.add(entry, now: 1000) }
        return watch
    }

    @Test func `a release that signs other bytes makes the rule fall`() throws {
        let watch = try watch("2%") { sight in
            try sight.see(0..<400, .pass)
            try sight.see(400..<440, .refuse(.signatureMismatch))
        }
        let found = try #require(watch.fall(now: 1000))
        #expect((385...495).contains(found.installs))
        #expect((22...62).contains(found.refused))
    }

    @Test func `a release that gets some of its requests right makes the rule fall too`() throws {
        let watch = try watch("2%") { sight in
            try sight.see(0..<400, .pass)
            try sight.see(0..<40, .refuse(.digestMismatch))
        }
        #expect(watch.fall(now: 1000) != nil)
    }

    @Test func `what other gateways have counted counts too, each install once`() throws {
        var here = try watch("2%") { try $0.see(0..<90, .pass) }
        var there = try watch("2%") { sight in
            try sight.see(60..<400, .pass)
            try sight.see(400..<440, .refuse(.signatureMismatch))
        }
        expectEqual(here.fall(now: 1000), nil)
        let unsent = there.takeUnsent()
        expectEqual(unsent.count, 1)
        #expect(there.takeUnsent().isEmpty)
        there.sendAgain(slot: unsent[0].slot)
        expectEqual(there.takeUnsent().count, 1)
        // They come again with each reading.
        for _ in 0..<3 { here.add(unsent[0].counts, ofSlot: unsent[0].slot, now: 1000) }
        let found = try #require(here.fall(now: 1000))
        #expect((385...495).contains(found.installs))
        #expect((22...62).contains(found.refused))
        expectEqual(here.finding(now: 1000 + 325).installs, 0)
        here.forget()
        expectEqual(here.finding(now: 1000).installs, 0)
    }

    @Test func `a clock that goes back stops no guard, and what is ahead does not count`() throws {
        var here = try watch("2%") { try $0.see(0..<400, .pass) }
        var there = try watch("2%") { try $0.see(400..<800, .pass) }
        for (slot, counts) in there.takeUnsent() { here.add(counts, ofSlot: slot, now: 1000) }
        #expect(here.finding(now: 1000).installs > 700)
        // The next database's clock is ten minutes behind. A release goes wrong.
        expectEqual(here.finding(now: 400).installs, 0)
        var sight = try Sight()
        try sight.see(800..<1000, .refuse(.signatureMismatch))
        for entry in sight.counts.take() { there.add(entry, now: 400) }
        for (slot, counts) in there.takeUnsent() { here.add(counts, ofSlot: slot, now: 400) }
        let found = try #require(here.fall(now: 400))
        #expect((180...220).contains(found.installs))
        // What was written by the clock of before is read again.
        var late = try watch("2%") { try $0.see(0..<400, .pass) }
        for (slot, counts) in late.takeUnsent() { here.add(counts, ofSlot: slot, now: 400) }
        expectEqual(here.finding(now: 400), found)
    }

    @Test func `what another try heals counts only where nothing passes`() throws {
        let healed = try watch("2%") { sight in
            try sight.see(0..<400, .refuse(.challengeExpired))
            try sight.see(0..<400, .pass)
        }
        expectEqual(healed.finding(now: 1000).refused, 0)
        expectEqual(healed.fall(now: 1000), nil)
        let stuck = try watch("2%") { sight in
            try sight.see(0..<400, .pass)
            try sight.see(400..<440, .refuse(.challengeUnknown))
        }
        let found = try #require(stuck.fall(now: 1000))
        #expect((20...64).contains(found.refused))
    }

    @Test func `requests without an enrolled key never make it fall, however many`() throws {
        let watch = try watch("2%") { sight in
            try sight.see(0..<200, .pass)
            try sight.see(1000..<9000, .refuse(.signatureMismatch), known: false)
            try sight.see(1000..<9000, .refuse(.keyUnknown), known: false)
            for _ in 0..<9000 {
                sight.counts.count(sight.rules.rules[0], Verdict(.refuse(.assertionMissing))) {
                    true
                }
            }
        }
        expectEqual(watch.finding(now: 1000).refused, 0)
        expectEqual(watch.fall(now: 1000), nil)
    }

    @Test func `one enrolled key counts once, however often it is refused`() throws {
        let watch = try watch("2%", minimum: 10) { sight in
            try sight.see(0..<200, .pass)
            for _ in 0..<5000 { try sight.see(500..<501, .refuse(.signatureMismatch)) }
        }
        #expect((1...2).contains(watch.finding(now: 1000).refused))
        expectEqual(watch.fall(now: 1000), nil)
    }

    @Test(
        arguments: [
            .refuse(.keyRevoked), .refuse(.riskExceeded), .refuse(.deviceFlagged),
            .refuse(.addressThrottled), .refuse(.challengesExhausted), .failure(.store),
        ] as [Verdict.Outcome]
    )
    func `who is meant to be refused, or is refused by our own fault, is not counted`(
        outcome: Verdict.Outcome
    ) throws {
        let watch = try watch("2%") { sight in
            try sight.see(0..<200, .pass)
            try sight.see(200..<400, outcome)
        }
        #expect((180...220).contains(watch.finding(now: 1000).installs))
        expectEqual(watch.finding(now: 1000).refused, 0)
    }

    @Test func `a refusal that was excused, or of a rule without a guard, is not counted`() throws {
        var sight = try Sight()
        try sight.see(0..<100, .refuse(.appMismatch), isExcused: true)
        try sight.see(0..<100, .refuse(.appMismatch), rule: 1)
        try sight.see(0..<100, .refuse(.appMismatch), rule: 2)
        #expect(sight.counts.take().isEmpty)
    }

    @Test func `a request of the rules before a reload is not counted for another rule`() throws {
        var sight = try Sight()
        let gone = Rule(
            id: "gone",
            index: 0,
            match: .all,
            origin: OriginIndex(0),
            mode: .enforce
        )
        let beyond = Rule(id: "x", index: 77, match: .all, origin: nil, mode: .enforce)
        let key = KeyID(bytes: [UInt8](repeating: 7, count: 32))
        for rule in [gone, beyond] {
            sight.counts.count(rule, Verdict(.refuse(.appMismatch), keyID: key)) { true }
        }
        #expect(sight.counts.take().isEmpty)
    }

    @Test func `too few installs, or a handful of refused ones, conclude nothing`() throws {
        let few = try watch("2%", minimum: 100) { sight in
            try sight.see(0..<60, .refuse(.versionRefused))
        }
        expectEqual(few.fall(now: 1000), nil)
        let handful = try watch("2%", minimum: 10) { sight in
            try sight.see(0..<40, .pass)
            try sight.see(40..<48, .refuse(.versionRefused))
        }
        #expect((6...9).contains(handful.finding(now: 1000).refused))
        expectEqual(handful.fall(now: 1000), nil)
    }

    @Test func `a share of refused installs below that of the rule is borne`() throws {
        func fall(_ percent: String) throws -> Bool {
            try watch(percent) { sight in
                try sight.see(0..<900, .pass)
                try sight.see(900..<1000, .refuse(.signatureMismatch))
            }.fall(now: 1000) != nil
        }
        #expect(try fall("5%"))
        #expect(try !fall("20%"))
    }

    @Test func `what is older than the window is forgotten, slot by slot`() throws {
        var (watch, sight) = (try watch("2%"), try Sight())
        try sight.see(0..<200, .refuse(.versionRefused))
        for entry in sight.counts.take() { watch.add(entry, now: 1000) }
        try sight.see(200..<400, .pass)
        for entry in sight.counts.take() { watch.add(entry, now: 1150) }
        #expect(watch.fall(now: 1270) != nil)
        expectEqual(watch.finding(now: 1310).refused, 0)
        #expect((180...220).contains(watch.finding(now: 1310).installs))
        expectEqual(watch.finding(now: 1460).installs, 0)
        // The slot of long ago is used anew.
        try sight.see(0..<20, .pass)
        for entry in sight.counts.take() { watch.add(entry, now: 1600) }
        #expect((16...24).contains(watch.finding(now: 1600).installs))
    }

    @Test func `the counts of loops add up, and an install of both counts once`() throws {
        var watch = try watch("2%")
        for _ in 0..<3 {
            var sight = try Sight()
            try sight.see(0..<150, .pass)
            try sight.see(150..<200, .refuse(.versionRefused))
            for entry in sight.counts.take() { watch.add(entry, now: 1000) }
            #expect(sight.counts.take().isEmpty)
        }
        #expect((180...220).contains(watch.finding(now: 1000).installs))
        watch.forget()
        expectEqual(watch.finding(now: 1000).installs, 0)
    }

    @Test(arguments: [0, -5, 1, .max, .max - 1] as [Int64])
    func `no reading of the clock stops it`(now: Int64) throws {
        var (watch, sight) = (try watch("2%"), try Sight())
        try sight.see(0..<200, .refuse(.versionRefused))
        for entry in sight.counts.take() { watch.add(entry, now: now) }
        #expect(watch.fall(now: now) != nil)
    }
}
