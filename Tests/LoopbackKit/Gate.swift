import Dispatch

/// Lets one thread of a test wait for another.
package final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    package func open() { semaphore.signal() }

    /// Waits until it was opened, once for each opening.
    package func pass() throws {
        let patience = DispatchTimeInterval.milliseconds(Int(Wire.patienceMilliseconds))
        guard semaphore.wait(timeout: .now() + patience) == .success else {
            throw WireFault.timedOut
        }
    }
}
