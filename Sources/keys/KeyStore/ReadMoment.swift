internal import Synchronization

/// When the changes of others were read last, and for how long that counts.
///
/// By the continuous clock: it goes on while the process is stopped and the machine sleeps.
struct ReadMoment: ~Copyable, Sendable {
    private let lifetime: Duration?
    private let clock: @Sendable () -> ContinuousClock.Instant
    private let start: ContinuousClock.Instant
    /// Nanoseconds behind the start.
    private let last: Atomic<Int64>

    /// - lifetime: `nil` where what was read counts until reading fails.
    init(lifetime: Duration?, clock: @escaping @Sendable () -> ContinuousClock.Instant) {
        self.lifetime = lifetime
        self.clock = clock
        start = clock()
        last = Atomic(0)
    }

    /// The moment before a reading, for ``note(_:)``: what changes during it may be missed.
    var now: ContinuousClock.Instant { clock() }

    /// What had changed by then is known.
    func note(_ moment: ContinuousClock.Instant) {
        _ = last.max(Self.nanoseconds(moment - start), ordering: .releasing)
    }

    /// Whether what is known counts now.
    var counts: Bool {
        guard let lifetime else { return true }
        let age = Self.nanoseconds(clock() - start) - last.load(ordering: .acquiring)
        return age <= Self.nanoseconds(lifetime)
    }

    /// At most 2⁶² of them, 146 years.
    private static func nanoseconds(_ duration: Duration) -> Int64 {
        let most = Duration.nanoseconds(Int64(1) << 62)
        let (seconds, attoseconds) = min(max(duration, .zero), most).components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
