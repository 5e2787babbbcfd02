import ConfigurationReading
import Dispatch
import EventLoops
import Glibc
import KeyStore
import Rules

// Hand-over from one process to its successor, while clients are served:
//
//     old                                          new
//     starts the program at its own path
//     PLAN: the listening sockets                  reads configuration, certificates and keys
//                                                  ALIVE, each second
//                                                  READY
//     accepts no orders of operators; signals to
//     end and to reload wait
//     all event loops are quiesced
//     waiting changes are committed
//     STATE: challenges, sessions, used tokens;    opens the store, reads the new changes
//     orders and drained servers; the store's
//     descriptors
//                                                  TAKEN
//     GO: decides nothing any more                 accepts
//     event loops continue, and drain              answers the old one's queries
//
// At any moment one process decides which counter, which challenge and which number of a session is
// used. Before GO that is the old process, and after GO the new one. While the event loops are
// quiesced, neither decides. The old process still has undecided requests: held uploads, and
// requests on existing connections. It asks the new process about each.
//
// If the new process fails, hangs or is late before GO, the old one kills it, waits for its end,
// and continues: a process that may still decide is never left alive. If the old process dies, the
// new one sees the end of the socket, and continues: the old one closes it before GO only after the
// new one has ended.
struct Upgrade {
    /// The result of an upgrade.
    struct Done: Sendable {
        let process: Int32
        /// The path of the program that was started.
        let program: String
        /// Its version, as it says itself.
        let version: String
        /// Why this may not be the program that was meant; `nil` where nothing speaks for that.
        let doubt: String?
        /// The time in which nothing was accepted and decided, nanoseconds.
        let pause: UInt64
    }

    /// The time limits of the new process.
    struct Patience: Sendable {
        /// For all that it does while the old process serves.
        var ready = Duration.seconds(60)
        /// The longest silence at any time: it reports each second that it lives.
        var silence = Duration.seconds(5)
        /// For the rest, while clients wait, from the first quiesced event loop. It has read the
        /// keys before. Only if it must update the tables of a store, it reads the keys in this
        /// time.
        var handover = Duration.seconds(10)
    }

    /// The time for event loops to end their iteration. One takes some milliseconds.
    private static let loopTime = DispatchTimeInterval.seconds(2)
    /// The time for the disk to commit the waiting changes.
    private static let diskTime = DispatchTimeInterval.seconds(3)
    /// The time for the service manager to get the new main process.
    private static let managerTime = DispatchTimeInterval.seconds(1)

    /// The parts of the gateway that an upgrade concerns.
    struct Parts: Sendable {
        let plane: ControlPlane
        let transferred: TransferredParts
        let rollouts: Rollouts
        let reloads: Reloads
        let sockets: [ListenerSet]
        let operatorLoops: [LoopUnit]
    }

    private let parts: Parts
    /// Called when the new process, which decides, does not answer, and when it answers again.
    private let successorChanged: @Sendable (_ isHung: Bool) -> Void
    /// The store's name; the new process must find the same one.
    private let store: String
    /// The generation of the configuration when the new process was asked for.
    private let generation: Int
    var patience = Patience()
    /// The path of the program that is started: this one's.
    var program: String

    /// Called on the control queue.
    init(_ parts: Parts, successorChanged: @escaping @Sendable (_ isHung: Bool) -> Void) {
        (self.parts, self.successorChanged) = (parts, successorChanged)
        store = parts.plane.configuration.store.name
        program = parts.plane.surroundings.program.path
        generation = parts.reloads.generation
    }

    /// Performs the upgrade. Blocks; not on the control queue.
    ///
    /// - Throws: why there is none. Then the new process has ended, and the old one continues.
    func run() throws(UpgradeRefusal) -> Done {
        parts.transferred.decider.keys.beginTrail()
        do throws(UpgradeRefusal) {
            return try handOver()
        } catch {
            parts.transferred.decider.keys.endTrail()
            parts.rollouts.reopen()
            throw error
        }
    }

    private func handOver() throws(UpgradeRefusal) -> Done {
        let environment = parts.plane.surroundings.supervisor?.environment ?? [:]
        let successor = try SuccessorProcess(program, environment)
        let version: String
        let orders: FleetOrders
        do throws(UpgradeRefusal) {
            try sendPlan(to: successor)
            version = try awaitReady(successor)
            orders = try parts.rollouts.close(within: Self.diskTime)
            // From here on, signals to end and to reload wait for the end of the upgrade.
            try checkChanges()
        } catch {
            successor.kill()
            throw error
        }
        let began = MonotonicClock.nanoseconds
        let pulse = watchdogPulse()
        defer { pulse?.end() }
        // Also the operators' event loops: their calls use tokens of devices.
        let park = LoopBarrier(parts.plane.loops + parts.operatorLoops)
        defer { park.open() }
        guard park.wait(Self.loopTime) else {
            successor.kill()
            throw UpgradeRefusal("an event loop did not end its iteration in time")
        }
        let line = try handOver(orders, to: successor, since: began)
        let pause = MonotonicClock.nanoseconds &- began
        parts.transferred.decider.handOver(to: line)
        line.start(successorChanged)
        for unit in parts.plane.loops { unit.leaveSockets(closes: false) }
        for unit in parts.operatorLoops { unit.leaveSockets(closes: true) }
        return Done(
            process: successor.identifier,
            program: program,
            version: version,
            doubt: doubt(of: successor.file),
            pause: pause
        )
    }

    /// - started: the file that was at the program's path when it was started.
    private func doubt(of started: OwnProgram.File?) -> String? {
        guard OwnProgram.File(program) == started else {
            return "\(program) was replaced or deleted while it started; next: upgrade again"
        }
        guard started != parts.plane.surroundings.program.file else {
            return "\(program) is the same file as before; next: put the program that is meant "
                + "there, and upgrade again"
        }
        return nil
    }

    /// - Throws: where the gateway was told to end, or the new process may have read an older
    ///   configuration than the one in use.
    private func checkChanges() throws(UpgradeRefusal) {
        let (isEnding, isReloaded) = parts.plane.queue.sync {
            (
                parts.plane.isEnding,
                parts.reloads.isRunning || parts.reloads.generation != generation
            )
        }
        guard !isEnding else { throw UpgradeRefusal("the gateway ends") }
        guard !isReloaded else {
            throw UpgradeRefusal("the configuration was read again meanwhile; try again")
        }
    }

    /// Reports that the gateway is alive while its event loops are quiesced, which takes a bounded
    /// time. `nil` where no manager expects it.
    private func watchdogPulse() -> Pulse? {
        guard let supervisor = parts.plane.surroundings.supervisor,
            let time = supervisor.watchdogMicroseconds
        else { return nil }
        return Pulse(every: .microseconds(Int(clamping: max(time / 3, 1)))) {
            supervisor.tell(.alive)
        }
    }

    private func sendPlan(to successor: SuccessorProcess) throws(UpgradeRefusal) {
        let sets = parts.sockets
        let plan = sets.map { set in
            HandoverMessage.Socket(
                address: set.address.text,
                isLent: set.isLent,
                count: set.descriptors.count
            )
        }
        var isSent = successor.socket.send(.plan(store: store, sockets: plan))
        var left = sets.flatMap(\.descriptors)[...]
        while isSent, !left.isEmpty {
            let some = Array(left.prefix(HandoverSocket.descriptorsMax))
            isSent = successor.socket.send(.sockets, descriptors: some)
            left = left.dropFirst(some.count)
        }
        // If one has ended, that is noticed next.
    }

    /// Waits until the new process could serve.
    ///
    /// - Returns: its version.
    private func awaitReady(_ successor: SuccessorProcess) throws(UpgradeRefusal) -> String {
        let began = MonotonicClock.nanoseconds
        guard case .ready(let version) = try next(from: successor, within: patience.ready, began)
        else { throw Self.isForeign }
        return version
    }

    private static let isForeign = UpgradeRefusal(
        "the new process is of a version that can't take over"
    )

    /// The next message of the new process but the ones that it lives.
    ///
    /// - time: the longest wait, from `began` on.
    private func next(
        from successor: SuccessorProcess,
        within time: Duration,
        _ began: UInt64
    ) throws(UpgradeRefusal) -> HandoverMessage {
        while true {
            let passed = Duration.nanoseconds(Int64(clamping: MonotonicClock.nanoseconds &- began))
            guard passed < time else {
                throw UpgradeRefusal("the new process was not ready within \(time)")
            }
            let wait = min(time - passed, patience.silence)
            switch successor.socket.receive(within: max(Int(clamping: wait.milliseconds), 1)) {
            case .message(.alive, _): continue
            case .message(.failed(let text), _):
                throw UpgradeRefusal("the new process can't serve: \(text)")
            case .late where wait < patience.silence: continue
            case .late:
                throw UpgradeRefusal(
                    "the new process hangs: it has said nothing for \(patience.silence)"
                )
            case .ended: throw UpgradeRefusal("the new process has ended; the log has what it said")
            case .message(let message, _): return message
            case .malformed: throw Self.isForeign
            }
        }
    }

    /// Hands over the state, and then the decisions. The event loops are quiesced.
    private func handOver(
        _ orders: FleetOrders,
        to successor: SuccessorProcess,
        since began: UInt64
    ) throws(UpgradeRefusal) -> SuccessorLine {
        guard isOnDisk(within: Self.diskTime) else {
            successor.kill()
            throw UpgradeRefusal("the store's disk did not take in time what waits for it")
        }
        let lease: StoreLease?
        do throws(JournalError) {
            lease = try parts.transferred.decider.keys.stopWriting()
        } catch {
            successor.kill()
            throw UpgradeRefusal("the store can't be written or read: \(error)")
        }
        do throws(UpgradeRefusal) {
            let state = parts.transferred.state(
                orders: parts.rollouts.fleet == nil ? orders.agreed.json : orders.json
            )
            guard send(state.bytes, lease, to: successor.socket) else {
                throw UpgradeRefusal("the new process does not take the state")
            }
            guard try next(from: successor, within: patience.handover, began) == .taken else {
                throw Self.isForeign
            }
            // Before it reports that it is ready: the manager accepts messages only from the main
            // process.
            guard tell(successor.identifier), successor.socket.send(.go) else {
                _ = tell(getpid())
                throw UpgradeRefusal("the new process has ended, or the service manager hangs")
            }
            return SuccessorLine(successor.socket)
        } catch {
            successor.kill()
            try takeBack(error)
            throw error
        }
    }

    private func takeBack(_ refusal: UpgradeRefusal) throws(UpgradeRefusal) {
        do throws(JournalError) {
            try parts.transferred.decider.keys.goOn()
        } catch {
            throw UpgradeRefusal("\(refusal.text); the store can't be used any more: \(error)")
        }
    }

    private func send(_ state: [UInt8], _ lease: StoreLease?, to socket: HandoverSocket) -> Bool {
        var descriptors = lease.map { [$0.lock, $0.calls] } ?? []
        var left = state[...]
        repeat {
            let piece = Array(left.prefix(HandoverMessage.pieceMax))
            left = left.dropFirst(piece.count)
            guard socket.send(.state(piece, isLast: left.isEmpty), descriptors: descriptors) else {
                return false
            }
            descriptors = []
        } while !left.isEmpty
        return true
    }

    /// Waits until the store has the waiting changes. A hanging disk must not delay clients.
    ///
    /// - Returns: whether it has them, or can't take them; the next try reports that.
    private func isOnDisk(within time: DispatchTimeInterval) -> Bool {
        let written = DispatchGroup()
        DispatchQueue(label: "portcullis.upgrade.flush").async(group: written) { [parts] in
            // A failure here occurs again when writing stops, and is reported then.
            do { try parts.transferred.decider.keys.committer.flush() } catch {}
        }
        return written.wait(timeout: .now() + time) == .success
    }

    /// - Returns: whether the service manager has got it, or there is none.
    private func tell(_ process: Int32) -> Bool {
        guard let supervisor = parts.plane.surroundings.supervisor else { return true }
        supervisor.tell(.mainProcess(process))
        return supervisor.drain(within: Self.managerTime)
    }
}
