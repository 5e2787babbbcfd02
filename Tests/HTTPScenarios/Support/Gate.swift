import Dispatch

/// Lets one thread of a test wait for another.
final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func open() { semaphore.signal() }

    /// Waits until it was opened, once for each opening.
    func pass() throws {
        let patience = DispatchTimeInterval.milliseconds(Int(Wire.patienceMilliseconds))
        guard semaphore.wait(timeout: .now() + patience) == .success else {
            throw WireFault.timedOut
        }
    }
}
