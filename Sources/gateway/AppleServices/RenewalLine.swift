internal import KeyStore

/// The receipts of the keys of one environment: those that go next, and until when all of them
/// wait. Apple has a host for each environment, and each fails by itself.
///
/// Times are milliseconds since 1970.
struct RenewalLine {
    /// After calls that failed one after the other.
    private static let backOff = BackOff(first: .seconds(30), most: .seconds(3_600))
    /// Rejections in a row that are taken for a fault of the configuration, and the pause then.
    static let rejectionsMax = 8
    private static let rejectionPause: Int64 = 3_600_000
    /// The longest that an answer may have all keys wait, in seconds.
    static let retryAfterMax = 3_600

    var queue: RenewalQueue
    private(set) var pausedUntil: Int64 = .min
    private var failures = 0
    private var rejections = 0

    /// - `limit`: the most receipts that are held ahead.
    init(limit: Int) { queue = RenewalQueue(limit: limit) }

    /// A call failed, or what it brought could not be stored.
    ///
    /// - `seconds`: what the answer asks for, if it does.
    mutating func failed(retryAfter seconds: Int?, at now: Int64, _ random: UInt64) {
        // Calls that were under way together end together, and are one failure.
        if pausedUntil <= now {
            failures += 1
            let pause = Self.backOff.pause(after: failures, random: random)
            pausedUntil = now + pause.components.seconds * 1_000
        }
        let asked = Int64(min(max(seconds ?? 0, 0), Self.retryAfterMax)) * 1_000
        pausedUntil = max(pausedUntil, now + asked)
    }

    /// A receipt was rejected; `true` when there were so many in a row that all wait now.
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

    /// The wall clock may have been put back: nothing waits for longer than it would have.
    mutating func clamp(_ now: Int64) {
        pausedUntil = min(pausedUntil, now + Int64(Self.retryAfterMax) * 1_000)
    }
}
