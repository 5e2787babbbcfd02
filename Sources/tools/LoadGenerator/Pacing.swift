/// When requests are sent.
package struct Pacing: Equatable, Sendable {
    /// Requests a second over all event loops; `nil` in a closed loop.
    package let rate: Double?
    /// At most this number of requests over all event loops.
    package let countLimit: UInt64?
    /// No request is due later than this, counted from the end of the warm-up; nanoseconds.
    package let duration: UInt64?
    /// Requests that are due before this are sent and judged, and their latency is not recorded.
    package let warmUp: UInt64

    package init(rate: Double?, countLimit: UInt64?, duration: UInt64?, warmUp: UInt64) {
        self.rate = rate
        self.countLimit = countLimit
        self.duration = duration
        self.warmUp = warmUp
    }

    /// Nanoseconds from the start until an event loop's n-th request is due; `nil` in a closed
    /// loop.
    ///
    /// The event loops take turns, so all of them together keep one even beat.
    package func due(_ number: UInt64, loop: Int, of loops: Int) -> UInt64? {
        guard let rate else { return nil }
        let place = Double(number) * Double(loops) + Double(loop)
        return UInt64(clamping: Int64(place / rate * 1e9))
    }

    /// The most requests that an event loop sends, by their count.
    package func countLimit(loop: Int, of loops: Int) -> UInt64 {
        guard let countLimit else { return .max }
        let (share, rest) = countLimit.quotientAndRemainder(dividingBy: UInt64(max(loops, 1)))
        return share + (UInt64(loop) < rest ? 1 : 0)
    }

    /// Nanoseconds from the start after which no request is due.
    package var end: UInt64 {
        guard let duration else { return .max }
        let (end, overflow) = warmUp.addingReportingOverflow(duration)
        return overflow ? .max : end
    }

    /// The number of requests; `nil` when it depends on the speed of the answers.
    package var expectedCount: UInt64? {
        guard let rate, duration != nil else { return countLimit }
        let byTime = UInt64(clamping: Int64((Double(end) / 1e9 * rate).rounded(.up)))
        return min(byTime, countLimit ?? .max)
    }
}
