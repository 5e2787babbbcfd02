import ConfigurationReading
import Dispatch
import Logging
import Rules
import Services
import Signatures
import Verification

/// The orders of operators and guards about rollouts, while the gateway runs. Changes are decided
/// one after the other; each takes effect when it is on disk.
///
/// In a fleet the database decides: it compares and sets the orders, and this gateway takes what is
/// newer than what it has. Nothing here is on the way of a request.
final class Rollouts: OrderTaking {
    /// The longest wait of an answer for busy event loops: 2 s.
    private static let patience = DispatchTimeInterval.seconds(2)

    /// The functions of other parts that handle an order.
    struct Consumers {
        /// The number of event loops.
        var loops = 0
        /// Gives the current orders to every event loop; `told` is called on the control queue for
        /// each event loop that has them.
        var serve: @Sendable (_ told: @escaping @Sendable () -> Void) -> Void = { _ in }
        var tookEffect: @Sendable (FleetOrders.Change) -> Void = { _ in }
        /// The counts of a rule in the last hour, or of all rules; `nil` where event loops are too
        /// busy.
        var lastHour: @Sendable (String?, @escaping @Sendable (Report?) -> Void) -> Void = { _, _ in
        }
    }

    struct State {
        /// What was reached. It is in force soon, when it is on disk.
        var reached: FleetOrders
        var orders: RolloutOrders
        /// The version of the orders in force; 0 without a fleet.
        var version: Int64
        /// The last change of the fleet's orders that this gateway knows.
        var lastChange: FleetOrders.Change?
        /// The seal of ``reached``; `nil` while it is unknown.
        var seal: FleetOrdering.Seal?
        var waiting: [WaitingOrder] = []
        /// An order is being decided or saved.
        var isDeciding = false
        /// The database did not answer the last time.
        var isAway = false
        /// No further order is accepted: the orders go to the successor.
        var isClosed = false
        /// Called once no order waits to be saved.
        var whenSaved: (@Sendable () -> Void)?
        var delivery = OrderDelivery()
        var consumers = Consumers()
    }

    let plane: ControlPlane
    let keeper: OrderKeeper
    /// `nil` where the orders are of this gateway alone.
    let fleet: FleetAccess?
    /// The queue on which the database is waited for.
    let asking = DispatchQueue(label: "portcullis.rollout.database")
    let state: QueueBound<State>

    init(_ plane: ControlPlane, _ start: OrdersAtStart) {
        self.plane = plane
        fleet = start.fleet
        keeper = OrderKeeper(plane, start.store, unsaved: start.unsaved)
        let orders = start.orders
        state = QueueBound(
            State(reached: orders, orders: start.inForce, version: orders.version),
            on: plane.queue
        )
    }

    func start(_ consumers: Consumers) {
        state.value.consumers = consumers
        keeper.start { [self] in
            // An order that is being saved would be replaced by what is in force; a successor owns
            // the file.
            guard !state.value.isDeciding, !state.value.isClosed else { return nil }
            return kept(state.value.reached)
        }
    }

    var orders: RolloutOrders { state.value.orders }

    /// The version of the fleet's orders in force, and the number of orders that the fleet does not
    /// have; `nil` without a fleet.
    var fleetOrders: (version: Int64, pending: Int)? {
        fleet.map { _ in (state.value.version, state.value.reached.pending.count) }
    }

    /// Why the orders in force are not on disk; `nil` where they are.
    var unsaved: String? { keeper.unsaved }

    var isBusy: Bool {
        !state.value.waiting.isEmpty || state.value.isDeciding || state.value.isClosed
    }

    /// Whether the orders go to a successor.
    var isClosed: Bool { state.value.isClosed }

    func add(_ order: WaitingOrder) {
        state.value.waiting.append(order)
        decideNext()
    }

    private func decideNext() {
        guard !state.value.isDeciding else { return }
        guard !state.value.waiting.isEmpty else {
            let saved = state.value.whenSaved
            state.value.whenSaved = nil
            saved?()
            return
        }
        let next = state.value.waiting.removeFirst()
        let now = UnixTime(seconds: plane.wallSeconds)
        guard let note = RolloutNote(at: now, by: next.by, why: next.call.why) else {
            next.done(.impossible(.unknownRule))
            return decideNext()
        }
        state.value.isDeciding = true
        if let fleet { return decide(next, note: note, fleet: fleet) }
        var orders = state.value.orders
        do throws(RolloutOrders.Fault) {
            let change = try orders.take(
                next.call.request,
                note: note,
                rules: plane.configuration.fileRules
            )
            save(FleetOrders(agreed: orders), [FleetOrders.Change(alone: change)], by: next)
        } catch {
            ended(next, .impossible(error))
        }
    }

    /// An order has ended without effect.
    func ended(_ order: WaitingOrder, _ result: RolloutResult) {
        state.value.isDeciding = false
        order.done(result)
        decideNext()
    }

    private func kept(_ reached: FleetOrders) -> OrderKeeper.Kept {
        OrderKeeper.Kept(
            reached: reached,
            orders: reached.orders(plane.configuration.fileRules)
        )
    }

    /// Saves what was reached, and then has it take effect.
    ///
    /// A full disk must not prevent an app from working: what refuses no more clients holds at
    /// once, and is written later. So does what a fleet has agreed on: its database has it.
    ///
    /// - order: the order that has led there; `nil` where it came from elsewhere.
    func save(
        _ reached: FleetOrders,
        _ changes: [FleetOrders.Change],
        by order: WaitingOrder?,
        reach: RolloutReach = .gateway
    ) {
        let rules = plane.configuration.fileRules
        let now = UnixTime(seconds: plane.wallSeconds)
        let kept = kept(reached)
        let isFirm =
            fleet != nil || kept.orders.refusesNoMore(than: state.value.orders, rules, at: now)
        keeper.save(kept, changes, holds: isFirm) { [self] fault in
            if let fault, !isFirm {
                plane.log.error("a change of rollouts has no effect: \(fault)")
                if let order { ended(order, .unsaved(fault)) }
                return
            }
            if fleet == nil { state.value.reached = reached }
            takeEffect(kept, changes) { areAllTold in
                guard let order, let change = changes.last?.change else { return }
                order.done(.changed(change, reach, areAllTold: areAllTold, unsaved: fault))
            }
            guard order != nil else { return }
            state.value.isDeciding = false
            decideNext()
        }
    }

    private func takeEffect(
        _ kept: OrderKeeper.Kept,
        _ changes: [FleetOrders.Change],
        told: @escaping OrderDelivery.Answer
    ) {
        let isNew = state.value.orders != kept.orders
        state.value.orders = kept.orders
        state.value.version = kept.reached.version
        let consumers = state.value.consumers
        for change in changes {
            plane.log.notice("rollout of \(change.text)")
            consumers.tookEffect(change)
        }
        guard isNew || !changes.isEmpty else { return told(true) }
        let number = state.value.delivery.begin(loops: consumers.loops, told)
        plane.perform(after: Self.patience) { [self] in state.value.delivery.end(number)?(false) }
        consumers.serve { [self] in state.value.delivery.taken(number)?(true) }
    }

    /// Accepts no further orders, not even of guards, and waits for those that are being saved.
    /// Blocks; not on the control queue.
    ///
    /// - Returns: the orders for the successor.
    func close(within time: DispatchTimeInterval) throws(UpgradeRefusal) -> FleetOrders {
        let saved = DispatchGroup()
        saved.enter()
        plane.perform { [self] in
            state.value.isClosed = true
            // After the saves of what the fleet has agreed on, too, which no order here waits for:
            // the successor owns their file.
            state.value.whenSaved = { [keeper] in keeper.afterSaves { saved.leave() } }
            decideNext()
        }
        guard saved.wait(timeout: .now() + time) == .success else {
            throw UpgradeRefusal("an order about rollouts could not be saved in time")
        }
        return plane.queue.sync { state.value.reached }
    }

    /// Accepts orders again: the upgrade has failed.
    func reopen() { plane.perform { self.state.value.isClosed = false } }

    /// Ends the orders that the files end: see ``RolloutOrders/ended(by:after:)``.
    ///
    /// - before: the rules of the files until now; `nil` at the start.
    func obeyFiles(after before: RuleSet?) {
        for request in orders.ended(by: plane.configuration.fileRules, after: before) {
            let call = RolloutRequest.Call(request, why: "its file verifies nothing any more")
            add(
                WaitingOrder(call: call, by: RolloutNote.gatewayName) { [plane] result in
                    switch result {
                    case .changed, .stale, .impossible: break
                    case .unsaved, .upgrading:
                        plane.log.error(
                            "an order for rule \(request.rule ?? "") could not be ended: \(result)"
                        )
                    }
                }
            )
        }
    }

    /// Reports which orders replace the settings that were just read.
    func warn() {
        if let emergency = orders.emergency {
            plane.log.warning("no rule refuses, by `rollout --all observe` (\(emergency.text))")
        }
        for problem in orders.problems(plane.configuration) { plane.log.warning("\(problem.text)") }
    }
}

extension FleetOrders.Change {
    /// The change of a gateway without a fleet, or without its database.
    init(alone change: RolloutOrders.Change) { self.init(version: 0, change, gateway: "") }

    /// `orders: enforce (file) → observe (command), uid 0: the new build fails`
    var text: String {
        let note = change.note
        let why = note.why.isEmpty ? "" : ": \(note.why)"
        let order = version > 0 ? ", order \(version) at \(gateway)" : ""
        return
            "\(change.rule ?? "all rules"): \(change.from) → \(change.to), \(note.by)\(order)\(why)"
    }
}
