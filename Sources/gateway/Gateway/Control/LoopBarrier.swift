import Dispatch
import EventLoops

/// Quiesces event loops between two iterations: meanwhile nothing is accepted, read or decided.
///
/// So the shared state of the event loops is that of one moment, without a further lock.
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

    /// Waits until all event loops are quiesced.
    ///
    /// - Returns: whether they are.
    func wait(_ time: DispatchTimeInterval) -> Bool {
        arrivals.wait(timeout: .now() + time) == .success
    }

    /// Lets them continue. Called once.
    func open() { gate.leave() }
}

extension LoopUnit {
    /// Leaves the listening sockets unchanged to the process that also has them.
    ///
    /// - closes: whether at once; otherwise when the event loop drains.
    func leaveSockets(closes: Bool) {
        perform { residents in
            for listener in residents.listeners { listener.ownership = .lent }
            guard closes else { return }
            for listener in residents.listeners { listener.endGently {} }
            residents.listeners = []
        }
    }
}
