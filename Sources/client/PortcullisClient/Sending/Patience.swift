import Foundation

/// How much longer one request waits for what it is to carry: for its key, a session, challenges, a
/// device token and its signature, and before it is sent again. Redirects and tries share it.
///
/// What is spent on sending does not count, since an upload may take minutes. Nor does the turn of
/// a strict counter, which has a limit of its own.
struct Patience: Sendable {
    /// In seconds.
    private(set) var left: Double
    /// What one wait may take that does not count, in seconds.
    let longest: Double

    /// The least time for what a device makes by itself, in seconds: a signature takes some
    /// milliseconds, and is worth them also when the time is over.
    static let leastForDevice: Double = 1

    /// - Parameters:
    ///   - limits: of the session.
    ///   - timeout: the request's own, in seconds; zero or less is none.
    init(_ limits: PortcullisLimits, timeout: Double) {
        longest = timeout > 0 ? timeout : .infinity
        left = min(limits.proofWait.seconds, longest)
    }

    /// Lets work wait, for as long as it may and this request still does.
    mutating func wait<Value>(
        atMost seconds: Double,
        by clock: any ClientClock,
        _ work: (Double) async throws -> Value
    ) async rethrows -> Value {
        try await spend(min(seconds, left), by: clock, work)
    }

    /// The same for what a device makes by itself.
    mutating func waitForDevice<Value>(
        atMost seconds: Double,
        by clock: any ClientClock,
        _ work: (Double) async throws -> Value
    ) async rethrows -> Value {
        try await spend(min(seconds, max(left, Self.leastForDevice)), by: clock, work)
    }

    /// A clock that was set back meanwhile gives no time back.
    private mutating func spend<Value>(
        _ seconds: Double,
        by clock: any ClientClock,
        _ work: (Double) async throws -> Value
    ) async rethrows -> Value {
        let start = clock.now
        defer { left = max(0, left - max(0, clock.now.timeIntervalSince(start))) }
        return try await work(seconds)
    }
}
