/// How requests wait while all servers of an origin have as many connections as they may.
package struct QueueRule: Sendable {
    /// The most that wait; 0 for none.
    package var max = 1_000
    /// Milliseconds that one waits at most.
    package var timeout: UInt64 = 5_000

    package init() {}
}
