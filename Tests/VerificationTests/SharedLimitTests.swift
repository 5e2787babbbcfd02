import AppAttest
import Cryptography
import Expectations
import HTTPWire
import Rules
import Testing

@testable import Verification

/// Limits that the gateways of a fleet share. Every gateway exchanges with the table once in a
/// second.
@Suite struct SharedLimitTests {
    private static let second: UInt64 = 1_000_000_000
    private static let start: UInt64 = 1 << 40

    /// What the database has.
    private struct Table {
        struct Place: Hashable {
            let limit: FleetLimit
            let subject: UInt64
        }

        /// When each bucket is full, in microseconds.
        private(set) var fullAt: [Place: Int64] = [:]

        mutating func exchange(_ gateway: EnrolmentAdmission, of count: Int, at tick: UInt64) {
            take(gateway.takeUntold(), at: tick)
            tell(gateway, of: count, at: tick)
        }

        mutating func take(_ uses: [FleetLimit.Use], at tick: UInt64) {
            let now = Int64(tick / 1_000)
            for use in uses {
                let place = Place(limit: use.limit, subject: use.subject)
                // It was taken in the last second.
                fullAt[place] = max(fullAt[place] ?? 0, now - 1_000_000) + use.micros
            }
        }

        func tell(_ gateway: EnrolmentAdmission, of count: Int, at tick: UInt64) {
            let levels = fullAt.compactMap { place, time in
                FleetLimit.Level(
                    limit: place.limit.rawValue,
                    subject: place.subject,
                    fullIn: time - Int64(tick / 1_000)
                )
            }
            gateway.heard(levels, gateways: count, tick: tick)
        }
    }

    private let addresses = AddressTable(capacity: 1 << 16, key: (1, 2))

    private func fleet(
        _ count: Int,
        perSecond: Int = 1,
        burst: Int = 600,
        perAttester: Int = 6
    ) -> [EnrolmentAdmission] {
        var settings = EnrolmentAdmission.Settings()
        (settings.perSecond, settings.burst) = (perSecond, burst)
        settings.perAttester = perAttester
        return (0..<count).map { _ in
            let gateway = EnrolmentAdmission(settings)
            gateway.share(under: (3, 4))
            gateway.heard([], gateways: count, tick: Self.start)
            return gateway
        }
    }

    private func caller(_ address: UInt32) throws -> EnrolmentAdmission.Caller {
        guard case .held(let entry) = addresses.hold(.v4(address), now: 1, max: nil) else {
            throw Trial.Absent()
        }
        return EnrolmentAdmission.Caller(address: .v4(address), entry: entry)
    }

    /// The challenges that a client gets that asks for many at once.
    private func flood(
        _ gateway: EnrolmentAdmission,
        _ caller: EnrolmentAdmission.Caller,
        at tick: UInt64,
        asking count: Int = 400
    ) -> Int {
        (0..<count).count { _ in
            gateway.ask(caller, now: Trial.start, tick: tick, draw: 0) == .admitted
        }
    }

    @Test func `a flood over three gateways gets a limit, at most half more, and owes that`()
        throws
    {
        let gateways = fleet(3)
        var table = Table()
        let greedy = try caller(1)
        // Half of the burst is for others, and the shares are rounded up.
        var taken = gateways.map { flood($0, greedy, at: Self.start) }.reduce(0, +)
        #expect((300...303).contains(taken), "\(taken)")
        // The worst order: each asks for more as soon as it has been told, before the next one has.
        for gateway in gateways {
            table.exchange(gateway, of: 3, at: Self.start)
            taken += flood(gateway, greedy, at: Self.start)
        }
        #expect((390...456).contains(taken), "\(taken)")
        let first = taken
        for step in 1...300 as ClosedRange<UInt64> {
            let tick = Self.start + step * Self.second
            for gateway in gateways {
                table.exchange(gateway, of: 3, at: tick)
                taken += flood(gateway, greedy, at: tick, asking: 5)
            }
        }
        // 300 at once and one in a second, whatever was too much at first.
        #expect((595...606).contains(taken), "\(taken), \(first) at first")
        // Another address gets its share, a third of it at each gateway.
        let tick = Self.start + 300 * Self.second
        let other = try caller(2)
        expectEqual(gateways.map { flood($0, other, at: tick) }, [20, 20, 20])
    }

    /// The challenges that three gateways of 100/s give in ten seconds to a flood of clients, which
    /// reaches the first ones of them.
    private func given(burst: Int, reaching count: Int) -> Int {
        let gateways = fleet(3, perSecond: 100, burst: burst)
        let anyone = EnrolmentAdmission.Caller(address: .v4(1))
        var table = Table()
        var taken = 0
        for step in 0..<200 as Range<UInt64> {
            let tick = Self.start + step * Self.second / 20
            if step.isMultiple(of: 20) {
                for gateway in gateways { table.exchange(gateway, of: 3, at: tick) }
            }
            for gateway in gateways.prefix(count) {
                taken += flood(gateway, anyone, at: tick, asking: 12)
            }
        }
        return taken
    }

    @Test func `where all clients come to one gateway of three, it gives the whole rate`() {
        let taken = given(burst: 200, reaching: 1)
        #expect((980...1_200).contains(taken), "\(taken)")
    }

    @Test func `a burst that is smaller than what comes in a second takes nothing from the rate`() {
        let taken = given(burst: 10, reaching: 3)
        #expect((980...1_120).contains(taken), "\(taken)")
    }

    @Test func `a gateway that is cut off goes on with its share`() {
        let gateways = fleet(4, perSecond: 100, burst: 200)
        let anyone = EnrolmentAdmission.Caller(address: .v4(1))
        var taken = 0
        for step in 0..<400 as Range<UInt64> {
            let tick = Self.start + step * Self.second / 20
            taken += flood(gateways[0], anyone, at: tick, asking: 12)
            // The database takes nothing.
            if step.isMultiple(of: 20) { gateways[0].tellAgain(gateways[0].takeUntold()) }
        }
        // A fourth of the burst, and a fourth of the rate for twenty seconds.
        #expect((540...552).contains(taken), "\(taken)")
        // When it answers, it gets all of them.
        let told = gateways[0].takeUntold().filter { $0.limit == .rate }
        expectEqual(told.map(\.micros), [Int64(taken) * 10_000])
        #expect(gateways[0].takeUntold().isEmpty)
    }

    @Test func `the keys of one attester are counted by the fleet, also over a restart`() {
        let gateways = fleet(3)
        let attester = SHA256.digest(of: Array("leaked".utf8)).array
        var table = Table()
        func enrol(_ gateway: EnrolmentAdmission) -> Int {
            (0..<10).count { _ in gateway.take(attester: attester, tick: Self.start) == nil }
        }
        expectEqual(gateways.map(enrol), [2, 2, 2])
        for gateway in gateways { table.exchange(gateway, of: 3, at: Self.start) }
        for gateway in gateways { table.tell(gateway, of: 3, at: Self.start) }
        expectEqual(gateways.map(enrol), [0, 0, 0])
        let restarted = fleet(1)[0]
        table.tell(restarted, of: 3, at: Self.start)
        expectEqual(enrol(restarted), 0)
        let other = SHA256.digest(of: Array("honest".utf8)).array
        expectEqual(restarted.take(attester: other, tick: Self.start), nil)
    }

    @Test func `of a spray of addresses some are written at once, and none is lost`() throws {
        let gateway = fleet(2, perSecond: 10_000, burst: 100_000)[0]
        let greedy = try caller(1)
        expectEqual(flood(gateway, greedy, at: Self.start, asking: 50), 50)
        for number in 0..<1_000 as Range<UInt32> {
            expectEqual(flood(gateway, try caller(100 + number), at: Self.start, asking: 1), 1)
        }
        var told: [UInt64: Int64] = [:]
        var counts: [Int] = []
        var first: FleetLimit.Use?
        while true {
            let uses = gateway.takeUntold().filter { $0.limit == .address }
            guard !uses.isEmpty else { break }
            counts.append(uses.count)
            first = first ?? uses.first
            for use in uses { told[use.subject, default: 0] += use.micros }
        }
        // A thousand a second of each address: a tenth of the rate.
        expectEqual(first?.micros, 50 * 1_000, "those that took most come first")
        #expect(counts.allSatisfy { $0 <= 128 })
        // Of a row that is full, the subject that has taken least is given up.
        #expect(told.count >= 990)
    }

    @Test func `settings that were read again leave the gateway in its fleet`() {
        let gateway = fleet(4)[0]
        let next = EnrolmentAdmission(gateway.settings, after: gateway)
        let anyone = EnrolmentAdmission.Caller(address: .v4(1))
        expectEqual(flood(next, anyone, at: Self.start), 150)
    }

    @Test func `settings that were read again forget only what was taken of a limit that changed`()
        throws
    {
        let first = fleet(3)[0]
        let attester = SHA256.digest(of: Array("leaked".utf8)).array
        func enrol(_ gateway: EnrolmentAdmission) -> Int {
            (0..<10).count { _ in gateway.take(attester: attester, tick: Self.start) == nil }
        }
        let greedy = try caller(1)
        expectEqual(enrol(first), 2)
        #expect(flood(first, greedy, at: Self.start) > 0)
        var settings = first.settings
        settings.perAttester = 9
        let second = EnrolmentAdmission(settings, after: first)
        expectEqual(enrol(second), 3)
        expectEqual(flood(second, greedy, at: Self.start), 0)
        settings.burst = 700
        let third = EnrolmentAdmission(settings, after: second)
        expectEqual(enrol(third), 0)
        #expect(flood(third, greedy, at: Self.start) > 0)
        // The others hear of each token once.
        let told = third.takeUntold().filter { $0.limit == .attester }
        expectEqual(told.map(\.micros), [3 * 86_400_000_000 / 9])
        #expect(second.takeUntold().allSatisfy { $0.limit != .attester })
    }
}
