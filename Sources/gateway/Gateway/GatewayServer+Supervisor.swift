import ConfigurationReading
import Dispatch
import KeyStore
import Lanes
import Logging
import Rules
import Synchronization

// What the service manager is told.
extension GatewayServer {
    /// Says how the gateway stands. Nothing, where no manager wants to know.
    func tell(_ notice: Supervisor.Notice, status: String? = nil) {
        // The service is another process's, and the manager would not listen.
        if case .handedOver = upgrading { return }
        surroundings.supervisor?.tell(notice, status: status)
    }

    /// Says which sockets that were given are not listened on.
    static func tell(of unused: [String], _ log: Logger) {
        for what in unused {
            log.warning(
                """
                a socket that the process was started with is not used: \(what); next: give both \
                the same address, or take it out of the socket unit
                """
            )
        }
    }

    /// What the manager shows while the gateway serves.
    var servingStatus: String {
        "Serving, generation \(generation): \(configuration.rules.rules.count) rules, "
            + "\(keys.count) keys"
            + (refusedReload.map { "; last reload refused: \($0)" } ?? "")
    }

    /// Begins to say that the gateway is alive, three times in the manager's interval.
    ///
    /// Each time all lanes and the control queue have answered before. A lane that stands still
    /// keeps the round open, no other begins, and the manager starts the gateway anew.
    func startWatchdog() {
        dispatchPrecondition(condition: .onQueue(control))
        guard let time = surroundings.supervisor?.watchdogMicroseconds else { return }
        feedWatchdog(every: .microseconds(Int(clamping: max(time / 3, 1))))
    }

    /// Says that the gateway is alive while its lanes stand still on purpose, which they do for a
    /// bounded time. `nil` where no manager wants to hear it.
    func watchdogPulse() -> Pulse? {
        guard let supervisor = surroundings.supervisor,
            let time = supervisor.watchdogMicroseconds
        else { return nil }
        return Pulse(every: .microseconds(Int(clamping: max(time / 3, 1)))) {
            supervisor.tell(.alive)
        }
    }

    private func feedWatchdog(every interval: DispatchTimeInterval) {
        let next = DispatchTime.now() + interval
        let roll = LaneRoll(units.count) { [self] in
            control.async { [self] in
                tell(.alive)
                control.asyncAfter(deadline: next) { self.feedWatchdog(every: interval) }
            }
        }
        for unit in units { unit.lane.perform { roll.answered() } }
    }
}

/// Counts the lanes that have not answered yet.
private final class LaneRoll: Sendable {
    private let left: Atomic<Int>
    private let completion: @Sendable () -> Void

    init(_ count: Int, completion: @escaping @Sendable () -> Void) {
        left = Atomic(count)
        self.completion = completion
    }

    /// Called once by each lane.
    func answered() {
        if left.wrappingSubtract(1, ordering: .relaxed).newValue == 0 { completion() }
    }
}
