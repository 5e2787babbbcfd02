/// When something happened, and a number nobody can guess: what the machines don't get themselves.
package struct CallMoment: Sendable {
    /// Monotonic nanoseconds.
    package var tick: UInt64
    /// Seconds since 1970.
    package var wall: Int64
    /// Fresh for each moment.
    package var random: UInt64

    package init(tick: UInt64, wall: Int64, random: UInt64) {
        self.tick = tick
        self.wall = wall
        self.random = random
    }
}
