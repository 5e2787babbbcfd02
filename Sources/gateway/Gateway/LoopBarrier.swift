import Dispatch
import EventLoops

/// Keeps event loops standing still between two iterations: nothing is accepted, read or decided
/// meanwhile.
///
/// So what the event loops share is as one moment has left it, and nobody has to be told to wait.
final class LoopBarrier: Sendable {
    private let arrivals = DispatchGroup()
    private let gate = DispatchGroup()

    /// Asks all event loops to stop.
    init(_ units: [LoopUnit]) {
        gate.enter()
        for unit in units {
            arrivals.enter()
            unit.loop.perform { [arrivals, gate] in
                arrivals.leave()
                gate.wait()
            }
        }
    }

    /// Waits until all stand.
    ///
    /// - Returns: whether they do.
    func wait(_ time: DispatchTimeInterval) -> Bool {
        arrivals.wait(timeout: .now() + time) == .success
    }

    /// Lets them go on. Called once.
    func open() { gate.leave() }
}

extension LoopUnit {
    /// Leaves the listening sockets, as they are, to the process that has them too.
    ///
    /// - closes: whether at once; else when the event loop drains.
    func leaveSockets(closes: Bool) {
        let (loop, bound) = (loop, bound)
        loop.perform {
            let residents = bound.value
            for listener in residents.listeners { listener.ownership = .lent }
            guard closes else { return }
            for listener in residents.listeners { listener.endGently {} }
            residents.listeners = []
        }
    }
}
