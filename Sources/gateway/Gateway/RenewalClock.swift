import Dispatch

/// The time by which receipts are renewed. A test can let it pass faster.
struct RenewalClock: Sendable {
    /// Milliseconds since 1970.
    var now: @Sendable () -> Int64
    /// Runs a closure on a queue, so many milliseconds later.
    var run: @Sendable (DispatchQueue, Int64, @escaping @Sendable () -> Void) -> Void

    /// Timers of the system.
    init(now: @escaping @Sendable () -> Int64) {
        self.now = now
        run = { queue, milliseconds, body in
            let pause = DispatchTimeInterval.milliseconds(Int(clamping: milliseconds))
            queue.asyncAfter(deadline: .now() + pause, execute: body)
        }
    }
}
