import Foundation

/// Waits until the condition holds: looks, pauses, looks again until the deadline.
///
/// The one way in which tests wait for what another thread or process does. It counts seconds and
/// not tries: how long a try takes depends on what else the machine does.
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
    let deadline = ContinuousClock.now + .seconds(seconds)
    while ContinuousClock.now < deadline {
        if try condition() { return true }
        // A pause leaves the processor to what is waited for.
        Thread.sleep(forTimeInterval: 0.005)
    }
    return try condition()
}

/// The same for a condition that is asked asynchronously.
@discardableResult
package func eventually(
    within seconds: Double = 120,
    isolation: isolated (any Actor)? = #isolation,
    _ condition: () async throws -> Bool
) async rethrows -> Bool {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while ContinuousClock.now < deadline {
        if try await condition() { return true }
        try? await Task.sleep(for: .milliseconds(5))
    }
    return try await condition()
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
