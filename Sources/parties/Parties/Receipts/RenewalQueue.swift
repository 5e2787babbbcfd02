internal import KeyStore
import OutboundCalls

/// The receipts that are renewed next: a bounded heap of the first ones in the store.
///
/// The order is: receipts that an operator asked for; those that expire soon; the last used; the
/// longest due. Expired ones come last: as far as is known, Apple does not accept them.
struct RenewalQueue {
    /// The time before its end at which a receipt takes precedence, in seconds.
    static let urgentSeconds: Int64 = 14 * 86_400

    /// The rank of a receipt; a greater one is renewed earlier.
    struct Rank: Comparable {
        /// 3: asked for; 2: expires soon; 1: any other; 0: expired.
        let level: Int
        let lastUsedAt: Int64
        let dueAt: Int64
        /// Makes the order independent of the order of the store's rows.
        let row: Int64

        init(_ due: DueReceipt, at now: Int64) {
            let isEnded = due.expiresAt.map { $0 <= now } ?? false
            let isUrgent = due.expiresAt.map { $0 <= now + urgentSeconds } ?? false
            level = due.isAsked ? 3 : isEnded ? 0 : isUrgent ? 2 : 1
            lastUsedAt = due.lastUsedAt ?? .min
            dueAt = due.dueAt
            row = due.row
        }

        static func < (left: Self, right: Self) -> Bool {
            if left.level != right.level { return left.level < right.level }
            if left.lastUsedAt != right.lastUsedAt { return left.lastUsedAt < right.lastUsedAt }
            if left.dueAt != right.dueAt { return left.dueAt > right.dueAt }
            return left.row > right.row
        }
    }

    private struct Entry {
        let due: DueReceipt
        let rank: Rank
    }

    /// A heap with the lowest rank first while it is being filled; then sorted, the next one last.
    private var entries: [Entry] = []
    private let limit: Int
    /// The number of due receipts that did not fit.
    private(set) var leftOver = 0

    /// - `limit`: the most receipts, at least 1.
    init(limit: Int) { self.limit = max(limit, 1) }

    var count: Int { entries.count }

    /// Takes a receipt when it is among the first so far.
    mutating func offer(_ due: DueReceipt, at now: Int64) {
        let entry = Entry(due: due, rank: Rank(due, at: now))
        guard entries.count >= limit else {
            entries.append(entry)
            rise(entries.count - 1)
            return
        }
        leftOver += 1
        guard entries[0].rank < entry.rank else { return }
        entries[0] = entry
        sink(0)
    }

    /// All receipts were offered.
    mutating func close() { entries.sort { $0.rank < $1.rank } }

    var nextRank: Rank? { entries.last?.rank }

    /// The next receipt; after ``close()``.
    mutating func next() -> DueReceipt? { entries.popLast()?.due }

    /// Puts back a receipt that is to be renewed next. If it is already here, its place changes: a
    /// receipt that was here twice would be sent twice.
    mutating func putBack(_ due: DueReceipt, at now: Int64) {
        entries.removeAll { $0.due.row == due.row }
        entries.append(Entry(due: due, rank: Rank(due, at: now)))
    }

    private mutating func rise(_ start: Int) {
        var place = start
        while place > 0 {
            let parent = (place - 1) / 2
            guard entries[place].rank < entries[parent].rank else { return }
            entries.swapAt(place, parent)
            place = parent
        }
    }

    private mutating func sink(_ start: Int) {
        var place = start
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2]
            where child < entries.count && entries[child].rank < entries[least].rank {
                least = child
            }
            guard least != place else { return }
            entries.swapAt(place, least)
            place = least
        }
    }
}

/// The receipts of the keys of one environment: the next ones, and until when all of them wait.
/// Apple has a host for each environment, and each fails independently.
///
/// Times are milliseconds since 1970.
struct RenewalLine {
    /// After consecutive failed calls.
    private static let backOff = BackOff(first: .seconds(30), most: .seconds(3_600))
    /// Consecutive rejections that count as a fault of the configuration, and the pause after them.
    static let rejectionsMax = 8
    private static let rejectionPause: Int64 = 3_600_000
    /// The longest wait of all keys that an answer may cause, in seconds.
    static let retryAfterMax = 3_600

    var queue: RenewalQueue
    private(set) var pausedUntil: Int64 = .min
    private var failures = 0
    private var rejections = 0

    /// - `limit`: the most receipts held ahead.
    init(limit: Int) { queue = RenewalQueue(limit: limit) }

    /// A call failed, or its result could not be stored.
    ///
    /// - `seconds`: the wait that the answer asks for, if any.
    mutating func failed(retryAfter seconds: Int?, at now: Int64, _ random: UInt64) {
        // Concurrent calls end together, and count as one failure.
        if pausedUntil <= now {
            failures += 1
            let pause = Self.backOff.pause(after: failures, random: random)
            pausedUntil = now + pause.components.seconds * 1_000
        }
        let asked = Int64(min(max(seconds ?? 0, 0), Self.retryAfterMax)) * 1_000
        pausedUntil = max(pausedUntil, now + asked)
    }

    /// A receipt was rejected; `true` when there were enough in a row that all wait now.
    mutating func rejected(at now: Int64) -> Bool {
        rejections += 1
        guard rejections >= Self.rejectionsMax else { return false }
        pausedUntil = now + Self.rejectionPause
        return true
    }

    mutating func worked() {
        failures = 0
        rejections = 0
    }

    /// The wall clock may have been set back: no wait becomes longer than it was.
    mutating func clamp(_ now: Int64) {
        pausedUntil = min(pausedUntil, now + Int64(Self.retryAfterMax) * 1_000)
    }
}
