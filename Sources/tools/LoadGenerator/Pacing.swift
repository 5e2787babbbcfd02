/// When requests are sent.
package struct Pacing: Equatable, Sendable {
    /// Requests a second over all lanes; `nil` in a closed loop.
    package let rate: Double?
    /// At most so many requests over all lanes.
    package let countLimit: UInt64?
    /// No request is due later, counted from the end of the warm-up; nanoseconds.
    package let duration: UInt64?
    /// Requests that are due before are sent and judged, and their latency is not recorded.
    package let warmUp: UInt64

    package init(rate: Double?, countLimit: UInt64?, duration: UInt64?, warmUp: UInt64) {
        self.rate = rate
        self.countLimit = countLimit
        self.duration = duration
        self.warmUp = warmUp
    }

    /// Nanoseconds from the start until a lane's n-th request is due; `nil` in a closed loop.
    ///
    /// The lanes take turns, so that all of them together keep one even beat.
    package func due(_ number: UInt64, lane: Int, of lanes: Int) -> UInt64? {
        guard let rate else { return nil }
        let place = Double(number) * Double(lanes) + Double(lane)
        return UInt64(clamping: Int64(place / rate * 1e9))
    }

    /// How many requests a lane sends at most, by their count.
    package func countLimit(lane: Int, of lanes: Int) -> UInt64 {
        guard let countLimit else { return .max }
        let (share, rest) = countLimit.quotientAndRemainder(dividingBy: UInt64(max(lanes, 1)))
        return share + (UInt64(lane) < rest ? 1 : 0)
    }

    /// Nanoseconds from the start after which nothing is due.
    package var end: UInt64 {
        guard let duration else { return .max }
        let (end, overflow) = warmUp.addingReportingOverflow(duration)
        return overflow ? .max : end
    }

    /// How many requests there will be; `nil` when the answers' speed decides.
    package var expectedCount: UInt64? {
        guard let rate, duration != nil else { return countLimit }
        let byTime = UInt64(clamping: Int64((Double(end) / 1e9 * rate).rounded(.up)))
        return min(byTime, countLimit ?? .max)
    }
}
