import Cryptography
import Expectations
import Rules
import Testing

@Suite struct RolloutTests {
    /// A thousand key ids, the same at every run.
    private static let keys = (0..<1000).map { number in
        SHA256.digest(of: Array("key \(number)".utf8)).array
    }
    private static let now = UnixTime(seconds: 1_790_000_000)

    private func rollout(_ percent: String, salt: String = "place-order") throws -> Rollout {
        Rollout(.fixed(try #require(Share(percent: percent))), salt: salt)
    }

    private func enforced(_ rollout: Rollout) -> Set<[UInt8]> {
        Set(Self.keys.filter { rollout.enforces($0.span, at: Self.now) })
    }

    @Test func `the same keys are enforced at every run`() throws {
        let rollout = try rollout("25%")
        #expect(enforced(rollout) == enforced(try self.rollout("25%")))
        // Pinned: a change of the bucket function would move keys in production.
        let numbers = Self.keys.prefix(4).map { rollout.bucket(of: $0.span).number }
        expectEqual(numbers, Self.pinned)
    }

    /// Worked out by another implementation of HMAC.
    private static let pinned = [119_596, 199_580, 136_597, 626_777]

    @Test func `a growing share says when it takes a bucket in, to the second`() throws {
        let from = Self.now
        let rows: [(Int64, String, String)] = [
            (86_400, "0%", "100%"), (864_000, "1%", "50%"), (7, "0%", "3%"), (1, "0%", "100%"),
        ]
        for (span, start, end) in rows {
            let schedule = Rollout.Schedule.growing(
                from: from,
                to: from.advanced(bySeconds: span),
                start: try #require(Share(percent: start)),
                end: try #require(Share(percent: end))
            )
            let rollout = Rollout(schedule, salt: "enrolment")
            for key in Self.keys {
                let bucket = rollout.bucket(of: key.span)
                guard let time = rollout.admission(of: bucket) else {
                    #expect(!bucket.isWithin(try #require(Share(percent: end))))
                    continue
                }
                let isIn = rollout.enforces(key.span, at: time)
                let wasIn = rollout.enforces(key.span, at: time.advanced(bySeconds: -1))
                #expect(isIn && !wasIn)
            }
        }
        let fixed = try rollout("25%")
        let key = Self.keys[0]
        let bucket = fixed.bucket(of: key.span)
        expectEqual(fixed.admission(of: bucket), nil)
    }

    @Test func `raising the share takes keys in and leaves none out`() throws {
        var last: Set<[UInt8]> = []
        for percent in ["0%", "0.5%", "1%", "25%", "50%", "99.9%", "100%"] {
            let next = enforced(try rollout(percent))
            #expect(last.isSubset(of: next))
            last = next
        }
        expectEqual(last.count, Self.keys.count)
    }

    @Test(arguments: [("10%", 100), ("25%", 250), ("50%", 500), ("90%", 900)])
    func `a share of the keys is about that many`(percent: String, expected: Int) throws {
        // Four standard deviations of a thousand draws are 64 at most.
        let count = enforced(try rollout(percent)).count
        #expect(abs(count - expected) < 64)
    }

    @Test func `rules are salted apart and a common salt joins them`() throws {
        let one = enforced(try rollout("50%", salt: "place-order"))
        let other = enforced(try rollout("50%", salt: "read-orders"))
        // Independent halves share a quarter of the keys.
        #expect(abs(one.intersection(other).count - 250) < 64)
        #expect(one == enforced(try rollout("50%", salt: "place-order")))
    }

    @Test func `nothing and everything need no bucket`() throws {
        let empty: [UInt8] = []
        #expect(!(try rollout("0%")).enforces(empty.span, at: Self.now))
        #expect((try rollout("100%")).enforces(empty.span, at: Self.now))
    }

    @Test(arguments: [
        ("2026-11-30T23:59:59Z", 0),
        ("2026-12-01T00:00:00Z", 10_000),
        ("2026-12-16T00:00:00Z", 505_000),
        ("2026-12-30T23:59:59Z", 999_999),
        ("2026-12-31T00:00:00Z", 1_000_000),
        ("2027-06-01T00:00:00Z", 1_000_000),
    ])
    func `a schedule grows in a straight line between its dates`(time: String, share: Int) throws {
        let rollout = try schedule("2026-12-01", "2026-12-31", "1%", "100%")
        let now = try #require(UnixTime(iso8601: time))
        expectEqual(rollout.share(at: now).millionths, share)
    }

    @Test func `a schedule never shrinks from one second to the next`() throws {
        let rollout = try schedule("2026-12-01", "2026-12-02", "0.0001%", "33%")
        let from = try #require(UnixTime(iso8601: "2026-12-01T00:00:00Z"))
        var last = Share.none
        for second in stride(from: Int64(-10), through: 86_410, by: 7) {
            let share = rollout.share(at: from.advanced(bySeconds: second))
            #expect(share >= last)
            last = share
        }
        expectEqual(last.text, "33%")
    }

    @Test func `a schedule over all years does not overflow`() throws {
        let rollout = Rollout(
            .growing(
                from: UnixTime(seconds: 0),
                to: UnixTime(seconds: 253_402_300_799),
                start: .none,
                end: .whole
            ),
            salt: "long"
        )
        expectEqual(rollout.share(at: UnixTime(seconds: 126_701_150_399)).millionths, 499_999)
        expectEqual(rollout.share(at: UnixTime(seconds: .max)), .whole)
        expectEqual(rollout.share(at: UnixTime(seconds: .min)), .none)
    }

    private func schedule(
        _ from: String,
        _ to: String,
        _ start: String,
        _ end: String
    ) throws -> Rollout {
        Rollout(
            .growing(
                from: try #require(UnixTime(iso8601: from + "T00:00:00Z")),
                to: try #require(UnixTime(iso8601: to + "T00:00:00Z")),
                start: try #require(Share(percent: start)),
                end: try #require(Share(percent: end))
            ),
            salt: "place-order"
        )
    }
}
