/// When names are looked up again.
package struct LookUpPace: Sendable {
    /// After a look-up that did not find all; doubled each time, up to ``longest``.
    package var first = Duration.milliseconds(500)
    /// While all names are known, and the longest pause after failures. The shortest
    /// `resolve_interval` of the configuration bounds it, too.
    package var longest = Duration.seconds(86_400)
    private var pause: Duration?

    package init() {}

    /// The pause before the next look-up.
    mutating func next(isComplete: Bool) -> Duration {
        guard !isComplete else {
            pause = nil
            return longest
        }
        let now = min(pause ?? first, longest)
        pause = now * 2
        return now
    }
}
