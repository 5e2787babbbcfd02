import Encodings
import Expectations
import OutboundCalls
import Parties
import Testing

@testable import KeyStore

@Suite struct RenewalScheduleTests {
    private static let day: Int64 = 86_400
    /// Milliseconds.
    private static let start: Int64 = 1_800_000_000_000
    private static let second = start / 1_000

    private var schedule = RenewalSchedule(RenewalSettings(), at: start - 1_000, random: 0)

    /// Has the schedule look at what is due, and returns what it would do next.
    private mutating func scan(_ due: [DueReceipt], at now: Int64 = start) {
        expectEqual(schedule.next(at: now, random: 0), .scan)
        for one in due { schedule.offer(one, at: now) }
        schedule.scanEnded(at: now)
    }

    private mutating func rows(_ count: Int, from now: Int64 = start) -> [Int64] {
        var rows: [Int64] = []
        for step in 0..<count {
            let action = schedule.next(at: now + Int64(step) * 1_000, random: 0)
            guard case .renew(let due) = action else { break }
            rows.append(due.row)
            schedule.dropped(due)
        }
        return rows
    }

    /// A try of a key, and what is stored of it.
    private mutating func end(
        _ end: RenewalSchedule.End,
        expiresAt: Int64? = nil,
        at now: Int64 = start
    ) -> ReceiptState? {
        let due = DueReceipt(row: 1, expiresAt: expiresAt)
        scan([due], at: now)
        expectEqual(schedule.next(at: now, random: 0), .renew(due))
        return schedule.ended(due, end, at: now, random: 0)
    }

    @Test
    mutating func `what was asked for goes first, then what ends soon, then what was used last`() {
        let soon = Self.second + 13 * Self.day
        scan([
            DueReceipt(row: 1, lastUsedAt: 50),
            DueReceipt(row: 2, expiresAt: soon, lastUsedAt: 20),
            DueReceipt(row: 3, expiresAt: soon, lastUsedAt: 30),
            DueReceipt(row: 4, lastUsedAt: 60),
            DueReceipt(row: 5, lastUsedAt: 10, isAsked: true),
            DueReceipt(row: 6, dueAt: 8), DueReceipt(row: 7, dueAt: 7),
            DueReceipt(row: 8, expiresAt: Self.second - 1, lastUsedAt: 99),
        ])
        expectEqual(rows(9), [5, 3, 2, 4, 1, 7, 6, 8])
    }

    @Test mutating func `as many are held ahead as five minutes take, and those are the best`() {
        let count = 5_000 as Int64
        scan((0..<count).map { DueReceipt(row: $0, lastUsedAt: $0 * 7_919 % count) })
        let best = rows(1_500)
        expectEqual(best.count, 1_500)
        let uses = best.map { $0 * 7_919 % count }
        let latest = (0..<1_500 as Range<Int64>).map { count - 1 - $0 }
        expectEqual(uses, latest)
        // There was more, so the store is asked again at once.
        expectEqual(schedule.next(at: Self.start + 1_600_000, random: 0), .scan)
    }

    @Test mutating func `a key that Apple can't be asked about holds no other up`() {
        let due = [DueReceipt(row: 1, lastUsedAt: 2), DueReceipt(row: 2, lastUsedAt: 1)]
        scan(due)
        expectEqual(schedule.next(at: Self.start, random: 0), .renew(due[0]))
        let state = schedule.ended(due[0], .unasked(.noHost), at: Self.start, random: 0)
        expectEqual(state?.outcome, .noHost)
        expectEqual(state?.triedAt, Self.second)
        expectEqual(state?.dueAt, Self.second + Self.day)
        expectEqual(schedule.next(at: Self.start + 1_000, random: 0), .renew(due[1]))
    }

    @Test mutating func `calls keep the rate, however much is due`() {
        scan((0..<100).map { DueReceipt(row: $0) })
        var now = Self.start
        var calls: [Int64] = []
        while calls.count < 50 {
            switch schedule.next(at: now, random: UInt64(calls.count) &* 977) {
            case .renew(let due):
                calls.append(now)
                schedule.dropped(due)
            case .wait(let until): now = until
            case .scan:
                Issue.record("nothing is to be looked for")
                return
            }
        }
        for (earlier, later) in zip(calls, calls.dropFirst()) { #expect(later - earlier >= 200) }
        #expect(calls[49] - calls[0] <= 49 * 225)
    }

    @Test mutating func `a host that answers nobody keeps the other environment's places free`() {
        let environments = [KeyEnvironment.production, .development]
        scan((0..<40).map { DueReceipt(row: $0, environment: environments[Int($0 / 20)]) })
        var started: [KeyEnvironment: Int] = [:]
        for step in 0..<40 as Range<Int64> {
            let action = schedule.next(at: Self.start + step * 1_000, random: 0)
            if case .renew(let due) = action { started[due.environment, default: 0] += 1 }
        }
        expectEqual(started, [.production: 8, .development: 8])
    }

    @Test mutating func `eight are renewed at once, and no ninth before one ends`() {
        scan((0..<20).map { DueReceipt(row: $0) })
        var started: [DueReceipt] = []
        var now = Self.start
        for _ in 0..<20 {
            if case .renew(let due) = schedule.next(at: now, random: 0) { started.append(due) }
            now += 1_000
        }
        expectEqual(started.count, 8)
        schedule.dropped(started[0])
        guard case .renew = schedule.next(at: now, random: 0) else {
            Issue.record("a place is free")
            return
        }
    }

    @Test mutating func `a renewed receipt is left alone for a week, and never to its end`() {
        let second = Self.second
        func due(_ end: RenewalSchedule.End) -> Int64? {
            var copy = self
            return copy.end(end)?.dueAt
        }
        expectEqual(
            due(.renewed(notBefore: second + Self.day, expiresAt: second + 90 * Self.day)),
            second + 7 * Self.day
        )
        // One that ends in ten days is renewed as soon as that is allowed.
        expectEqual(
            due(.renewed(notBefore: second + Self.day, expiresAt: second + 10 * Self.day)),
            second + Self.day
        )
        expectEqual(
            due(.renewed(notBefore: second + 9 * Self.day, expiresAt: second + 90 * Self.day)),
            second + 9 * Self.day
        )
    }

    @Test mutating func `each end leaves its mark on the key, or none`() {
        let second = Self.second
        func state(_ end: RenewalSchedule.End, expiresAt: Int64? = nil) -> ReceiptState? {
            var copy = self
            return copy.end(end, expiresAt: expiresAt)
        }
        expectEqual(state(.gone)?.outcome, .gone)
        expectEqual(state(.gone)?.dueAt, nil)
        expectEqual(state(.early)?.outcome, .early)
        expectEqual(state(.early)?.dueAt, second + Self.day)
        expectEqual(state(.invalid)?.outcome, .invalid)
        expectEqual(state(.invalid)?.dueAt, second + Self.day)
        expectEqual(state(.rejected)?.outcome, .rejected)
        expectEqual(state(.rejected)?.dueAt, second + 7 * Self.day)
        // One that has ended will not be taken later.
        expectEqual(state(.rejected, expiresAt: second)?.dueAt, nil)
        expectEqual(state(.outage(retryAfter: nil)), nil)
        expectEqual(state(.gone)?.triedAt, second)
    }

    @Test mutating func `an outage makes all wait, longer each time, and loses no key`() throws {
        var now = Self.start
        var pauses: [Int64] = []
        let due = DueReceipt(row: 1)
        scan([due])
        for _ in 0..<9 {
            expectEqual(schedule.next(at: now, random: 0), .renew(due))
            expectEqual(schedule.ended(due, .outage(retryAfter: nil), at: now, random: 0), nil)
            let until = try #require(schedule.pause(of: .production, at: now))
            pauses.append((until - now) / 1_000)
            // What others may be due is looked for meanwhile.
            while now < until {
                switch schedule.next(at: now, random: 0) {
                case .wait(let next): now = min(next, until)
                case .scan:
                    schedule.offer(due, at: now)
                    schedule.scanEnded(at: now)
                case .renew:
                    Issue.record("nothing waits")
                    return
                }
            }
        }
        expectEqual(pauses, [15, 30, 60, 120, 240, 480, 960, 1_800, 1_800])
        expectEqual(schedule.next(at: now, random: 0), .renew(due))
        _ = schedule.ended(due, .early, at: now, random: 0)
        expectEqual(schedule.pause(of: .production, at: now), nil)
    }

    @Test mutating func `Retry-After is kept, up to an hour`() {
        func wait(_ seconds: Int) -> Int64? {
            var copy = self
            _ = copy.end(.outage(retryAfter: seconds))
            let until = copy.schedule.pause(of: .production, at: Self.start)
            return until.map { ($0 - Self.start) / 1_000 }
        }
        expectEqual(wait(600), 600)
        expectEqual(wait(1), 15)
        expectEqual(wait(-5), 15)
        expectEqual(wait(.max), 3_600)
    }

    @Test mutating func `rejections in a row are taken for a fault of the configuration`() {
        var now = Self.start
        for number in 1...8 {
            expectEqual(schedule.pause(of: .production, at: now), nil, "\(number)")
            _ = end(.rejected, at: now)
            now += 61_000
        }
        #expect(schedule.pause(of: .production, at: now) != nil)
        // One that is taken in between begins the count anew.
        schedule = RenewalSchedule(RenewalSettings(), at: now - 1_000, random: 0)
        for number in 1...20 {
            _ = end(number.isMultiple(of: 5) ? .early : .rejected, at: now)
            now += 61_000
        }
        expectEqual(schedule.pause(of: .production, at: now), nil)
    }

    @Test mutating func `an outage of one environment leaves the receipts of the others alone`() {
        let (one, other) = (KeyEnvironment.development, KeyEnvironment.production)
        // Those of development go first.
        let due =
            (0..<3).map { DueReceipt(row: $0, environment: one, lastUsedAt: 9) }
            + (3..<6).map { DueReceipt(row: $0, environment: other, lastUsedAt: 1) }
        scan(due)
        expectEqual(schedule.next(at: Self.start, random: 0), .renew(due[0]))
        expectEqual(
            schedule.ended(due[0], .outage(retryAfter: 600), at: Self.start, random: 0),
            nil
        )
        expectEqual(schedule.pause(of: one, at: Self.start), Self.start + 600_000)
        expectEqual(schedule.pause(of: other, at: Self.start), nil)
        expectEqual(rows(9, from: Self.start + 1_000), [3, 4, 5])
        // Behind its pause it goes on.
        expectEqual(schedule.next(at: Self.start + 599_000, random: 0), .scan)
        schedule.offer(due[0], at: Self.start + 599_000)
        schedule.scanEnded(at: Self.start + 599_000)
        expectEqual(rows(9, from: Self.start + 600_000), [0])
    }

    @Test mutating func `rejections of one environment leave the receipts of the others alone`() {
        var now = Self.start
        for _ in 0..<8 {
            _ = end(.rejected, at: now)
            now += 61_000
        }
        #expect(schedule.pause(of: .production, at: now) != nil)
        scan([DueReceipt(row: 1), DueReceipt(row: 2, environment: .development)], at: now)
        expectEqual(rows(2, from: now), [2])
    }

    @Test mutating func `a store that fails makes all wait, and longer until it works again`() {
        scan([DueReceipt(row: 1), DueReceipt(row: 2, environment: .test)])
        schedule.storeFailed(at: Self.start, random: 0)
        expectEqual(schedule.pause(of: .test, at: Self.start), Self.start + 15_000)
        expectEqual(schedule.next(at: Self.start, random: 0), .wait(until: Self.start + 15_000))
        // A call that succeeds says nothing about the store.
        _ = schedule.ended(DueReceipt(row: 3), .early, at: Self.start, random: 0)
        schedule.storeFailed(at: Self.start + 15_000, random: 0)
        expectEqual(schedule.pause(of: .test, at: Self.start + 15_000), Self.start + 45_000)
        schedule.storeWorked()
        schedule.storeFailed(at: Self.start + 45_000, random: 0)
        expectEqual(schedule.pause(of: .test, at: Self.start + 45_000), Self.start + 60_000)
    }

    @Test mutating func `other settings ask for no receipt twice that is under way`() {
        let due = [DueReceipt(row: 1), DueReceipt(row: 2)]
        scan(due)
        expectEqual(schedule.next(at: Self.start, random: 0), .renew(due[0]))
        var settings = RenewalSettings()
        settings.perSecond = 1
        schedule.take(settings)
        expectEqual(rows(1, from: Self.start + 1_000), [2])
        scan(due, at: Self.start + 61_000)
        expectEqual(rows(3, from: Self.start + 61_000), [2])
    }

    @Test mutating func `what an operator asks for goes before what is held ahead`() {
        scan([DueReceipt(row: 1), DueReceipt(row: 2)])
        schedule.ask(DueReceipt(row: 3, isAsked: true), at: Self.start)
        expectEqual(rows(3), [3, 1, 2])
    }

    @Test mutating func `what an operator asks for while it is held ahead is sent once`() {
        scan([DueReceipt(row: 1), DueReceipt(row: 2)])
        schedule.ask(DueReceipt(row: 2, isAsked: true), at: Self.start)
        var sent: [Int64] = []
        for step in Int64(0)..<4 {
            let action = schedule.next(at: Self.start + step * 1_000, random: 0)
            if case .renew(let due) = action { sent.append(due.row) }
        }
        expectEqual(sent, [2, 1])
    }

    @Test mutating func `a clock that is put back stops nothing for long`() {
        scan([DueReceipt(row: 1)], at: Self.start)
        let before = Self.start - 86_400_000
        guard case .wait(let until) = schedule.next(at: before, random: 0) else { return }
        #expect(until <= before + 2_000)
    }

    @Test(
        arguments: [
            (200, .receipt([1, 2, 3])), (304, .early), (400, .rejected(status: 400)),
            (401, .outage(retryAfter: 9)), (403, .rejected(status: 403)), (404, .gone),
            (429, .outage(retryAfter: 9)), (500, .outage(retryAfter: 9)),
            (503, .outage(retryAfter: 9)), (599, .outage(retryAfter: 9)),
            (204, .rejected(status: 204)), (302, .rejected(status: 302)),
        ] as [(Int, ReceiptReply)]
    )
    func `each status says what Apple says it does`(status: Int, reply: ReceiptReply) {
        let body = Array(Base64.text([1, 2, 3]).utf8)
        expectEqual(ReceiptReply(.answered(status: status, retryAfter: 9, body: body)), reply)
    }

    @Test func `what is no base64, and what was not answered, is told apart`() {
        let garbage = Array("<html>".utf8)
        expectEqual(
            ReceiptReply(.answered(status: 200, retryAfter: nil, body: garbage)),
            .unreadable
        )
        expectEqual(ReceiptReply(.unsent(.noCredential)), .unasked(.noCredential))
        expectEqual(ReceiptReply(.unsent(.noHost)), .unasked(.noHost))
        expectEqual(ReceiptReply(.unsent(.queueFull)), .outage(retryAfter: nil))
        expectEqual(ReceiptReply(.failed(.timeout)), .outage(retryAfter: nil))
    }
}
