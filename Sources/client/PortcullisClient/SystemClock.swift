public import Foundation

/// The clock of the system.
public struct SystemClock: ClientClock {
    /// The clock of the system.
    public init() {}

    /// The time of day.
    public var now: Date { Date() }

    /// Returns at a time, at once when that has passed.
    public func wait(until time: Date) async throws {
        let seconds = time.timeIntervalSince(now)
        guard seconds > 0 else { return try Task.checkCancellation() }
        try await Task.sleep(for: .seconds(seconds))
    }
}

/// The time, and waiting for it. Tests bring one of their own.
public protocol ClientClock: Sendable {
    /// The time of day.
    var now: Date { get }

    /// Returns at a time, at once when that has passed.
    ///
    /// - Throws: `CancellationError` when the task was cancelled.
    func wait(until time: Date) async throws
}

extension Duration {
    /// In seconds, as ``ClientClock`` and `Date` count.
    var seconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
