/// What a client still sends after its last answer: it is read and discarded for a bounded time and
/// amount, so that the client sees the answer and not a reset (RFC 9112 §9.6). Many HTTP/1 clients
/// write all of their content before they read.
struct Lingering {
    /// In milliseconds of the event loop's clock.
    private let end: UInt64
    private let silenceMax: UInt64
    private var remainingBytes: Int

    /// - now: milliseconds of the event loop's clock.
    init(_ timeouts: Timeouts, _ limits: ProxyLimits, now: UInt64) {
        end = now &+ timeouts.lingerTotal
        silenceMax = timeouts.linger
        remainingBytes = limits.drainBytesMax
    }

    /// The time to wait for more, in milliseconds: 0 when the time is over.
    func wait(now: UInt64) -> UInt64 { min(silenceMax, end - min(end, now)) }

    /// Counts bytes that were discarded.
    ///
    /// - Returns: whether more may be read.
    mutating func discard(_ count: Int) -> Bool {
        guard count <= remainingBytes else { return false }
        remainingBytes -= count
        return true
    }
}
