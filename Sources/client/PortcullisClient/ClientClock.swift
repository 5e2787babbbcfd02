public import Foundation

/// The time, and waiting for it. Tests bring one of their own.
public protocol ClientClock: Sendable {
    /// The time of day.
    var now: Date { get }

    /// Returns at a time, at once when that has passed.
    ///
    /// - Throws: `CancellationError` when the task was cancelled.
    func wait(until time: Date) async throws
}
