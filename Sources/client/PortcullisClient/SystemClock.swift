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
