package import OutboundCalls

/// When the list is asked for: when the last answer is no longer fresh, within bounds, and after a
/// failure by a growing pause.
///
/// One call at a time, so there is neither a queue nor a breaker: the pause is both.
package struct StatusListSchedule: Sendable {
    /// The bounds of the configuration.
    package struct Bounds: Hashable, Sendable {
        /// The shortest time from one answer to the next request.
        package var least: Duration
        /// The longest one.
        package var most: Duration

        package init(least: Duration, most: Duration) {
            self.least = least
            self.most = most
        }
    }

    /// The pause after a failure, by the number of consecutive ones.
    package static let pauses = BackOff(first: .seconds(10), most: .seconds(600))
    /// A request comes earlier by up to this share of its time, so that gateways that started
    /// together do not ask together.
    private static let spread: UInt64 = 10

    package var bounds: Bounds
    private var failures = 0

    package init(_ bounds: Bounds) { self.bounds = bounds }

    /// The time until the first request.
    ///
    /// - age: seconds since Google vouched for the copy on disk; `nil` without one. A gateway that
    ///   restarts again and again does not ask each time.
    package func first(age: Int64?) -> Duration {
        guard let age, age >= 0 else { return .zero }
        return max(bounds.least - .seconds(age), .zero)
    }

    /// The time until the next request, after an answer.
    ///
    /// - freshness: how long the answer is fresh; `nil` where it does not say.
    package mutating func answered(fresh freshness: Duration?, random: UInt64) -> Duration {
        failures = 0
        let pause = max(bounds.least, min(freshness ?? bounds.most, bounds.most))
        let milliseconds = UInt64(clamping: pause.components.seconds) * 1_000
        let earlier = random % (milliseconds / Self.spread + 1)
        return max(pause - .milliseconds(Int64(clamping: earlier)), bounds.least)
    }

    /// The time until the next request, after a failure.
    ///
    /// - retryAfter: the seconds that the answer asks for.
    package mutating func failed(retryAfter: Int?, random: UInt64) -> Duration {
        failures += 1
        let own = Self.pauses.pause(after: failures, random: random)
        let asked = Duration.seconds(max(retryAfter ?? 0, 0))
        return min(max(own, asked), max(bounds.most, bounds.least))
    }
}
