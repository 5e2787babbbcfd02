/// When requests are sent.
package struct Pacing: Equatable, Sendable {
    /// When they are due; `nil` in a closed loop.
    let schedule: StageSchedule?
    /// The stages; empty for a run with one rate, and in a closed loop.
    package let stages: [LoadStage]
    /// Requests a second over all event loops; `nil` in a closed loop and for stages.
    package let rate: Double?
    /// At most this number of requests over all event loops.
    package let countLimit: UInt64?
    /// No request is due later than this, counted from the end of the warm-up; nanoseconds.
    package let duration: UInt64?
    /// Requests that are due before this are sent and judged, and their latency is not recorded.
    package let warmUp: UInt64

    /// One rate, or as fast as answers come.
    package init(rate: Double?, countLimit: UInt64?, duration: UInt64?, warmUp: UInt64) {
        (self.rate, self.countLimit, self.warmUp) = (rate, countLimit, warmUp)
        (self.duration, stages) = (duration, [])
        let whole = duration.map { warmUp.addingReportingOverflow($0) }
        let length = whole.map { $0.overflow ? .max : $0.partialValue }
        schedule = rate.map { StageSchedule(rate: $0, length: length) }
    }

    /// Stages one after the other.
    ///
    /// - Throws: for too many stages, for stages that send nothing, and for a warm-up before a
    ///   stage that begins with the rate 0.
    package init(
        stages: [LoadStage],
        countLimit: UInt64?,
        warmUp: UInt64
    ) throws(LoadError) {
        guard stages.count <= StageSchedule.stagesMax else {
            throw LoadError("--stage: \(StageSchedule.stagesMax) stages at most")
        }
        guard warmUp == 0 || stages.first?.first ?? 0 > 0 else {
            throw LoadError(
                "--warm-up has the rate with which the first stage begins, and that is 0: "
                    + "give the first stage another rate, or leave out --warm-up"
            )
        }
        (self.stages, self.countLimit, self.warmUp, rate) = (stages, countLimit, warmUp, nil)
        duration = stages.reduce(0) { $0 + $1.length.nanoseconds }
        let made = StageSchedule(stages, warmUp: warmUp)
        guard made.count > 0 else { throw LoadError("--stage: the stages send no request") }
        schedule = made
    }

    /// Nanoseconds from the start until an event loop's n-th request is due; `nil` in a closed
    /// loop, and `UInt64.max` for a request that never is.
    ///
    /// The event loops take turns, so all of them together keep one even beat.
    package func due(_ number: UInt64, loop: Int, of loops: Int) -> UInt64? {
        schedule?.due(Double(number) * Double(loops) + Double(loop))
    }

    /// The number of the stage, from 0, for a request that is due at this time; `nil` without
    /// stages and in the warm-up.
    func stage(at offset: UInt64) -> Int? {
        guard !stages.isEmpty, let stage = schedule?.stage(at: offset) else { return nil }
        return min(stage, stages.count - 1)
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
        guard let schedule, duration != nil else { return countLimit }
        let byTime = UInt64(clamping: Int64(min(schedule.count.rounded(.up), 1e18)))
        return min(byTime, countLimit ?? .max)
    }
}
