import Dispatch
import Lanes

/// Keeps lanes standing still between two turns: nothing is accepted, read or decided meanwhile.
///
/// So what the lanes share is as one moment has left it, and nobody has to be told to wait.
final class LanePark: Sendable {
    private let arrivals = DispatchGroup()
    private let gate = DispatchGroup()

    /// Asks all lanes to stop.
    init(_ units: [LaneUnit]) {
        gate.enter()
        for unit in units {
            arrivals.enter()
            unit.lane.perform { [arrivals, gate] in
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

extension LaneUnit {
    /// Leaves the listening sockets, as they are, to the process that has them too.
    ///
    /// - closes: whether at once; else when the lane drains.
    func leaveSockets(closes: Bool) {
        let (lane, bound) = (lane, bound)
        lane.perform {
            let residents = bound.value
            for listener in residents.listeners { listener.ownership = .lent }
            guard closes else { return }
            for listener in residents.listeners { listener.endGently {} }
            residents.listeners = []
        }
    }
}
