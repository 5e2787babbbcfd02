import AppAttest
import Cryptography
import Dispatch
import Expectations
import Rules
import Synchronization
import Testing

@testable import Verification

/// The table of what each device has used: many devices, many threads, many gateways.
@Suite struct KeyRateTableTests {
    private static let second: UInt64 = 1_000_000_000
    private static let start: UInt64 = 1 << 40

    private static func keyID(_ number: Int) -> KeyID {
        KeyID(SHA256.digest(of: Array("device \(number)".utf8)))
    }

    private func taken(
        _ rates: KeyRates,
        _ rule: RateRule,
        of device: Int = 0,
        at tick: UInt64 = start,
        asking count: Int = 1
    ) -> Int {
        (0..<count).count { _ in rates.take(Self.keyID(device), rule, now: tick) == nil }
    }

    // MARK: One gateway

    @Test func `a burst at the start is the burst, and then comes the rate`() throws {
        let rule = try KeyRateTests.rate(10, burst: 20)
        let rates = KeyRates()
        expectEqual(taken(rates, rule, asking: 1_000), 20)
        var all = 20
        for step in 1...100 as ClosedRange<UInt64> {
            all += taken(rates, rule, at: Self.start + step * Self.second / 20, asking: 50)
        }
        expectEqual(all, 70, "ten a second for five seconds")
    }

    @Test func `a clock that goes back gives nothing and locks no one out`() throws {
        let rule = try KeyRateTests.rate(1, burst: 2)
        let rates = KeyRates()
        expectEqual(taken(rates, rule, at: Self.start + 100 * Self.second, asking: 5), 2)
        // As another event loop's clock that is a little behind.
        expectEqual(taken(rates, rule, at: Self.start + 100 * Self.second - 1, asking: 5), 0)
        // As after a resumed machine; it takes as long as the clock was ahead.
        expectEqual(taken(rates, rule, asking: 5), 0)
        let wait = try #require(rates.wait(Self.keyID(0), rule, now: Self.start))
        expectEqual(wait, 101 * Self.second)
        expectEqual(taken(rates, rule, at: Self.start + wait, asking: 5), 1)
    }

    @Test func `threads that count at once get one limit`() throws {
        let rule = try KeyRateTests.rate(1, per: .day, burst: 500)
        let rates = KeyRates()
        let all = Atomic<Int>(0)
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for number in 0..<4_000 {
                let device = number % 4
                guard rates.take(Self.keyID(device), rule, now: Self.start) == nil else { continue }
                all.wrappingAdd(1, ordering: .relaxed)
            }
        }
        let sum = all.load(ordering: .relaxed)
        // A token that is taken while its device gets its place may go uncounted.
        #expect((2_000...2_032).contains(sum), "\(sum)")
        expectEqual((0..<4).map { taken(rates, rule, of: $0, asking: 10) }, [0, 0, 0, 0])
    }

    @Test func `with more devices than fit the limit becomes wider, and for no one narrower`()
        throws
    {
        let rule = try KeyRateTests.rate(1, per: .hour, burst: 2)
        let rates = KeyRates()
        let count = KeyRates.devicesMax * 5 / 4
        // No device is refused because of the others.
        let first = (0..<count).count { rates.take(Self.keyID($0), rule, now: Self.start) == nil }
        expectEqual(first, count)
        #expect(rates.evicted > UInt64(count / 10))
        // Those that are there are counted; the others begin at zero.
        let second = (0..<count).count {
            rates.take(Self.keyID($0), rule, now: Self.start + 1) == nil
        }
        expectEqual(second, count)
        let greedy = taken(rates, rule, at: Self.start + 2, asking: 100)
        #expect(greedy <= 2)
        // Once all are refilled, evicting them forgets nothing.
        let evicted = rates.evicted
        for number in 0..<1_000 {
            _ = rates.take(Self.keyID(-1 - number), rule, now: Self.start + 7_201 * Self.second)
        }
        expectEqual(rates.evicted, evicted)
    }

    @Test func `a device that was given a token back has no more than a full bucket`() throws {
        let rule = try KeyRateTests.rate(1, burst: 3)
        let rates = KeyRates()
        for _ in 0..<10 { rates.giveBack(Self.keyID(0), rule) }
        expectEqual(taken(rates, rule), 1)
        for _ in 0..<10 { rates.giveBack(Self.keyID(0), rule) }
        expectEqual(taken(rates, rule, asking: 10), 3)
    }

    // MARK: A fleet

    /// What the database has, as `SharedLimitTests` has it.
    private struct Table {
        private var fullAt: [UInt64: Int64] = [:]
        private(set) var written = 0

        mutating func exchange(_ rates: KeyRates, of count: Int, at tick: UInt64) {
            let now = Int64(tick / 1_000)
            for use in rates.takeUntold() {
                fullAt[use.subject] = max(fullAt[use.subject] ?? 0, now - 1_000_000) + use.micros
                written += 1
            }
            let levels = fullAt.compactMap { subject, time in
                FleetLimit.Level(limit: 4, subject: subject, fullIn: time - now)
            }
            rates.heard(levels, gateways: count, tick: tick)
        }
    }

    private func fleet(_ count: Int) -> [KeyRates] {
        (0..<count).map { _ in
            let rates = KeyRates()
            rates.share(under: (3, 4))
            rates.heard([], gateways: count, tick: Self.start)
            return rates
        }
    }

    /// The requests that three gateways admit of one device in a minute, at 10/s and 20 at once.
    private func admitted(asking each: [Int]) throws -> Int {
        let rule = try KeyRateTests.rate(10, burst: 20)
        let gateways = fleet(3)
        var table = Table()
        var sum = 0
        for step in 0..<1_200 as Range<UInt64> {
            let tick = Self.start + step * Self.second / 20
            if step.isMultiple(of: 20) {
                for rates in gateways { table.exchange(rates, of: 3, at: tick) }
            }
            for (rates, count) in zip(gateways, each) {
                sum += taken(rates, rule, at: tick, asking: count)
            }
        }
        return sum
    }

    @Test func `a device that floods three gateways gets about one rate`() throws {
        let sum = try admitted(asking: [5, 5, 5])
        // 20 + 10 × 60; twice a bucket and a second's rate before they have heard of each other.
        #expect((560...660).contains(sum), "\(sum)")
    }

    @Test func `a device that stays at one gateway of three gets its whole rate`() throws {
        let sum = try admitted(asking: [5, 0, 0])
        #expect((560...660).contains(sum), "\(sum)")
    }

    @Test func `of devices that use little nothing is written`() throws {
        let rule = try KeyRateTests.rate(10, burst: 20)
        let gateways = fleet(3)
        var table = Table()
        for step in 0..<10 as Range<UInt64> {
            let tick = Self.start + step * Self.second
            for rates in gateways {
                for device in 0..<500 { expectEqual(taken(rates, rule, of: device, at: tick), 1) }
                table.exchange(rates, of: 3, at: tick)
            }
        }
        expectEqual(table.written, 0)
        // One that floods is written about, and no more than that.
        let tick = Self.start + 11 * Self.second
        expectEqual(taken(gateways[0], rule, of: 7, at: tick, asking: 100), 7)
        table.exchange(gateways[0], of: 3, at: tick)
        expectEqual(table.written, 1)
    }

    @Test func `what the database could not take is reported again`() throws {
        let rule = try KeyRateTests.rate(1, per: .hour, burst: 10)
        let rates = fleet(2)[0]
        expectEqual(taken(rates, rule, asking: 20), 5)
        let uses = rates.takeUntold()
        expectEqual(uses.map(\.micros), [5 * 3_600_000_000])
        #expect(rates.takeUntold().isEmpty)
        rates.tellAgain(uses)
        expectEqual(rates.takeUntold(), uses)
    }

    @Test func `a level that no gateway can have written locks no device out for ever`() throws {
        let rule = try KeyRateTests.rate(1, burst: 2)
        let rates = fleet(2)[0]
        _ = taken(rates, rule, asking: 5)
        let subject = try #require(rates.takeUntold().first?.subject)
        let level = try #require(
            FleetLimit.Level(limit: 4, subject: subject, fullIn: .max)
        )
        rates.heard([level], gateways: .max, tick: Self.start)
        let days = 86_400 * Self.second
        let wait = try #require(rates.wait(Self.keyID(0), rule, now: Self.start))
        #expect(wait <= 61 * days)
        let negative = try #require(
            FleetLimit.Level(limit: 4, subject: subject, fullIn: .min)
        )
        rates.heard([negative], gateways: .min, tick: Self.start)
        expectEqual(taken(rates, rule), 1)
    }
}
