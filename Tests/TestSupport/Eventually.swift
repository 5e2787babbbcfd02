import Foundation

/// Waits until the condition holds: looks, pauses, looks again until the deadline.
///
/// The one way in which tests wait for what another thread or process does. It counts seconds and
/// not tries: how long a try takes depends on what else the machine does. A pause is an eighth of
/// the time waited so far, at most a tenth of a second: looks cost processor time, often more than
/// what is waited for.
///
/// - Parameters:
///   - seconds: The deadline, in seconds; ample, since only a failure waits for it.
///   - condition: What is waited for; it is checked once more at the deadline.
/// - Returns: Whether the condition held.
/// - Throws: What the condition throws, at once.
@discardableResult
package func eventually(
    within seconds: Double = 120,
    _ condition: () throws -> Bool
) rethrows -> Bool {
    let start = ContinuousClock.now
    while true {
        if try condition() { return true }
        let waited = start.duration(to: .now)
        guard waited < .seconds(seconds) else { return try condition() }
        Thread.sleep(forTimeInterval: pause(after: waited) / .seconds(1))
    }
}

/// The time between two looks.
private func pause(after waited: Duration) -> Duration {
    min(max(waited / 8, .milliseconds(5)), .milliseconds(100))
}

/// The same for a condition that is asked asynchronously.
@discardableResult
package func eventually(
    within seconds: Double = 120,
    isolation: isolated (any Actor)? = #isolation,
    _ condition: () async throws -> Bool
) async rethrows -> Bool {
    let start = ContinuousClock.now
    while true {
        if try await condition() { return true }
        let waited = start.duration(to: .now)
        guard waited < .seconds(seconds) else { return try await condition() }
        try? await Task.sleep(for: pause(after: waited))
    }
}

/// What the body returns, once it throws no more.
///
/// - Throws: What the body throws at the deadline.
package func untilItSucceeds<Value>(
    within seconds: Double = 120,
    _ body: () throws -> Value
) throws -> Value {
    var result = Result { try body() }
    eventually(within: seconds) {
        if case .success = result { return true }
        result = Result { try body() }
        return false
    }
    return try result.get()
}
