import Expectations
import Parties
import TestSupport
import Testing

@testable import KeyStore

/// A month of renewals of ten thousand keys in compressed time: the schedule, a store and an Apple,
/// all of them models but the first.
@Suite struct RenewalCampaignTests {
    private static let day: Int64 = 86_400
    private static let start: Int64 = 1_800_000_000
    private static let keyCount = 10_000

    /// A key in the store; times in seconds.
    private struct Key {
        var due: DueReceipt
        var notBefore: Int64?
        var isGone = false
        var renewals: [Int64] = []
    }

    /// A call that is under way.
    private struct Call {
        let due: DueReceipt
        let end: RenewalSchedule.End
        let endsAt: Int64
    }

    private struct Campaign {
        var keys: [Key]
        var schedule: RenewalSchedule
        var random = SeededGenerator(seed: 15)
        var now = start * 1_000
        var calls: [(at: Int64, row: Int)] = []
        var running: [Call] = []
        /// Calls before field 19 or behind field 21, or for a key that is gone.
        var wrong = 0
        /// When each key is due.
        var dueAt = [Int64](repeating: 0, count: keyCount)
        let outages: [Range<Int64>]

        init(_ settings: RenewalSettings, outages: [Range<Int64>]) {
            self.outages = outages
            var random = SeededGenerator(seed: 7)
            keys = (0..<keyCount).map { row in
                let enrolled = start - Int64.random(in: 0..<60 * day, using: &random)
                let used = Int64.random(in: enrolled...start, using: &random)
                let due = DueReceipt(
                    row: Int64(row),
                    expiresAt: enrolled + 90 * day,
                    lastUsedAt: used
                )
                return Key(due: due)
            }
            schedule = RenewalSchedule(settings, at: now, random: 3)
        }

        /// The process ends and starts again: what it knew is gone, what was stored is not.
        mutating func restart(_ settings: RenewalSettings) {
            running = []
            now += 600_000
            schedule = RenewalSchedule(settings, at: now, random: random.next())
        }

        mutating func run(until end: Int64) {
            while now < end * 1_000 {
                if let done = running.firstIndex(where: { $0.endsAt <= now }) {
                    finish(running.remove(at: done))
                    continue
                }
                switch schedule.next(at: now, random: random.next()) {
                case .scan: scan()
                case .renew(let due): send(due)
                case .wait(let until):
                    let next = running.map(\.endsAt).min() ?? until
                    now = max(now + 1, min(until, next))
                }
            }
        }

        private mutating func scan() {
            let second = now / 1_000
            dueAt.withUnsafeBufferPointer { dueAt in
                var row = 0
                while row < dueAt.count {
                    if dueAt[row] <= second { schedule.offer(keys[row].due, at: now) }
                    row += 1
                }
            }
            schedule.scanEnded(at: now)
        }

        private mutating func send(_ due: DueReceipt) {
            let row = Int(due.row)
            calls.append((now, row))
            let second = now / 1_000
            let key = keys[row]
            if let notBefore = key.notBefore, second < notBefore { wrong += 1 }
            if key.isGone || second >= key.due.expiresAt ?? .max { wrong += 1 }
            let end: RenewalSchedule.End
            if outages.contains(where: { $0.contains(second) }) {
                end = .outage(retryAfter: calls.count.isMultiple(of: 2) ? 120 : nil)
            } else if row.isMultiple(of: 100), !key.renewals.isEmpty {
                end = .gone
            } else {
                end = .renewed(notBefore: second + day, expiresAt: second + 90 * day)
            }
            let time = Int64.random(in: 50...3_000, using: &random)
            running.append(Call(due: due, end: end, endsAt: now + time))
        }

        private mutating func finish(_ call: Call) {
            let row = Int(call.due.row)
            let random = random.next()
            guard let state = schedule.ended(call.due, call.end, at: now, random: random) else {
                return
            }
            switch call.end {
            case .gone: keys[row].isGone = true
            case .renewed(let notBefore, let expiresAt):
                keys[row].notBefore = notBefore
                keys[row].due.expiresAt = expiresAt
                keys[row].renewals.append(now / 1_000)
            default: Issue.record("Apple never says so here")
            }
            keys[row].due.dueAt = state.dueAt ?? .max
            dueAt[row] = keys[row].due.dueAt
        }
    }

    @Test func `ten thousand keys are renewed in time and at the rate, through three restarts`() {
        var settings = RenewalSettings()
        settings.perSecond = 1
        let hour: Int64 = 3_600
        // Two hours of 429 and 503 while much is due.
        let outage = Self.start + 7 * Self.day + hour..<Self.start + 7 * Self.day + 3 * hour
        var campaign = Campaign(settings, outages: [outage])
        // The first in the middle of the first round.
        campaign.run(until: Self.start + hour)
        campaign.restart(settings)
        campaign.run(until: Self.start + 8 * Self.day)
        campaign.restart(settings)
        campaign.run(until: Self.start + 19 * Self.day)
        campaign.restart(settings)
        let end = Self.start + 30 * Self.day
        campaign.run(until: end)

        // The rate: no two calls are closer than a second, restarts and outages included.
        let times = campaign.calls.map(\.at)
        let closest = zip(times, times.dropFirst()).map { $1 - $0 }.min() ?? 0
        #expect(closest >= 1_000)
        // The window: none before field 19, none behind field 21, none of a key that is gone.
        expectEqual(campaign.wrong, 0)
        // Each key in its turn: a week and its tenth, and a day for what waits before it.
        let gapMax = 7 * Self.day + 7 * Self.day / 10 + Self.day
        for key in campaign.keys {
            let moments = [Self.start] + key.renewals + (key.isGone ? [] : [end])
            let gap = zip(moments, moments.dropFirst()).map { $1 - $0 }.max() ?? .max
            #expect(gap <= gapMax)
            if gap > gapMax { return }
        }
        expectEqual(campaign.keys.count(where: \.isGone), Self.keyCount / 100)
        // No key is asked for more than it needs: a call for each renewal, one for each key that
        // is gone, those of the outage, and at most eight that each restart cut off.
        let renewals = campaign.keys.reduce(0) { $0 + $1.renewals.count }
        let extra = campaign.calls.count - renewals - Self.keyCount / 100
        let failed = campaign.calls.count { outage.contains($0.at / 1_000) }
        #expect(extra - failed <= 24)
        #expect(failed <= 40, "the outage is not hammered")
        // The most active keys first. Keys whose receipt ends soon don't exist at the start.
        let first = campaign.calls.prefix(1_000).map { campaign.keys[$0.row].due.lastUsedAt ?? 0 }
        expectEqual(first, first.sorted(by: >))
    }
}
