import ConfigurationReading
import Cryptography
import Dispatch
import EventLoops
import KeyStore
import Logging
import PostgreSQLKeyStore
import Proxy
import Rules
import Services
import Verification

/// The orders of operators and guards about rollouts, while the gateway runs. Changes are decided
/// one after the other; each takes effect when it is on disk.
///
/// In a fleet the database decides: it compares and sets the orders, and this gateway takes what is
/// newer than what it has. Nothing here is on the way of a request.
final class Rollouts: Sendable {
    /// The most changes that wait for the one that is being saved; further ones are refused.
    private static let waitingMax = 32
    /// The most changes that `/audit` shows: the last 50.
    private static let shownMax = 50
    /// The longest wait of an answer for busy event loops: 2 s.
    private static let patience = DispatchTimeInterval.seconds(2)
    /// The interval of tries to write orders that hold and are not on disk.
    private static let retryPace = DispatchTimeInterval.seconds(2)
    /// The most changes that wait for the audit log while it can't be written, the latest.
    private static let unauditedMax = 64

    struct Waiting {
        let call: RolloutRequest.Call
        let by: String
        let done: @Sendable (RolloutResult) -> Void
    }

    private struct Untold {
        /// The number of event loops that still have to take it.
        var left: Int
        let answer: @Sendable (_ areAllTold: Bool) -> Void
    }

    /// The functions of other parts that handle an order.
    struct Consumers {
        /// Gives the current orders to every event loop; `told` is called on the control queue for
        /// each event loop that has them.
        var serve: @Sendable (_ told: @escaping @Sendable () -> Void) -> Void = { _ in }
        var tookEffect: @Sendable (FleetOrders.Change) -> Void = { _ in }
        /// The counts of a rule in the last hour, or of all rules; `nil` where event loops are too
        /// busy.
        var lastHour: @Sendable (String?, @escaping @Sendable (Report?) -> Void) -> Void = { _, _ in
        }
    }

    private struct State {
        /// What was reached. It is in force soon, when it is on disk.
        var reached: FleetOrders
        var orders: RolloutOrders
        /// The version of the orders in force; 0 without a fleet.
        var version: Int64
        /// The last change of the fleet's orders that this gateway knows.
        var lastChange: FleetOrders.Change?
        /// The seal of ``reached``; `nil` while it is unknown.
        var seal: FleetOrdering.Seal?
        var waiting: [Waiting] = []
        /// An order is being decided or saved.
        var isDeciding = false
        /// Why the orders in force are not on disk; `nil` where they are.
        var unsaved: String?
        /// A try to write them is due.
        var isRetrying = false
        /// The database did not answer the last time.
        var isAway = false
        /// No further order is accepted: the orders go to the successor.
        var isClosed = false
        /// Called once no order waits to be saved.
        var whenSaved: (@Sendable () -> Void)?
        /// Changes in force that not all event loops have yet, by their number.
        var untold: [Int: Untold] = [:]
        var lastNumber = 0
        var consumers = Consumers()
    }

    private let plane: ControlPlane
    private let file: RolloutFile
    /// `nil` where the orders are of this gateway alone.
    let fleet: FleetAccess?
    private let queue: DispatchQueue
    /// Changes in force that the audit log does not have, on ``queue``.
    private let unaudited: QueueBound<[FleetOrders.Change]>
    /// The queue on which the database is waited for.
    private let asking = DispatchQueue(label: "portcullis.rollout.database")
    private let state: QueueBound<State>

    init(_ plane: ControlPlane, _ start: OrdersAtStart) {
        self.plane = plane
        (file, fleet) = (start.file, start.fleet)
        queue = DispatchQueue(label: "portcullis.rollout")
        unaudited = QueueBound([], on: queue)
        let orders = start.orders
        var state = State(reached: orders, orders: start.inForce, version: orders.version)
        state.unsaved = start.unsaved
        self.state = QueueBound(state, on: plane.queue)
    }

    func start(_ consumers: Consumers) {
        state.value.consumers = consumers
        if state.value.unsaved != nil { saveLater() }
    }

    var orders: RolloutOrders { state.value.orders }

    /// The version of the fleet's orders in force, and the number of orders that the fleet does not
    /// have; `nil` without a fleet.
    var fleetOrders: (version: Int64, pending: Int)? {
        fleet.map { _ in (state.value.version, state.value.reached.pending.count) }
    }

    /// Why the orders in force are not on disk; `nil` where they are.
    var unsaved: String? { state.value.unsaved }

    /// Whether an order waits or is being saved, or none is accepted.
    var isBusy: Bool {
        !state.value.waiting.isEmpty || state.value.isDeciding || state.value.isClosed
    }

    /// Whether the orders go to a successor.
    var isClosed: Bool { state.value.isClosed }

    func add(_ order: Waiting) {
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
            let change = try orders.take(next.call.request, note, plane.configuration.fileRules)
            save(FleetOrders(agreed: orders), [FleetOrders.Change(alone: change)], next)
        } catch {
            ended(next, .impossible(error))
        }
    }

    /// An order has ended without effect.
    private func ended(_ order: Waiting, _ result: RolloutResult) {
        state.value.isDeciding = false
        order.done(result)
        decideNext()
    }

    /// Saves what was reached, and then has it take effect.
    ///
    /// A full disk must not prevent an app from working: what refuses no more clients holds at
    /// once, and is written later. So does what a fleet has agreed on: its database has it.
    ///
    /// - order: the order that has led there; `nil` where it came from elsewhere.
    private func save(
        _ reached: FleetOrders,
        _ changes: [FleetOrders.Change],
        _ order: Waiting?,
        _ reach: RolloutReach = .gateway
    ) {
        let rules = plane.configuration.fileRules
        let orders = reached.orders(rules)
        let now = UnixTime(seconds: plane.wallSeconds)
        let isFirm =
            fleet != nil || orders.refusesNoMore(than: state.value.orders, rules, at: now)
        queue.async { [self] in
            let fault = write(reached, orders: orders, changes: changes, holds: isFirm)
            plane.perform { [self] in
                if let fault, !isFirm {
                    plane.log.error("a change of rollouts has no effect: \(fault)")
                    if let order { ended(order, .unsaved(fault)) }
                    return
                }
                if fleet == nil { state.value.reached = reached }
                written(fault)
                takeEffect(orders, version: reached.version, changes: changes) { areAllTold in
                    guard let order, let change = changes.last?.change else { return }
                    order.done(.changed(change, reach, areAllTold: areAllTold, unsaved: fault))
                }
                guard order != nil else { return }
                state.value.isDeciding = false
                decideNext()
            }
        }
    }

    /// Writes the orders, and the changes that the audit log lacks. Waits for the disk, on the
    /// queue of the file.
    ///
    /// - holds: whether the changes are in force also where they can't be written.
    /// - Returns: why they are not written; `nil` where they are.
    private func write(
        _ reached: FleetOrders,
        orders: RolloutOrders,
        changes: [FleetOrders.Change],
        holds: Bool
    ) -> String? {
        let lacking = Array((unaudited.value + changes).suffix(Self.unauditedMax))
        do throws(RolloutFile.Fault) {
            try file.save(reached, inForce: orders, lacking)
            unaudited.value = []
            return nil
        } catch {
            if holds { unaudited.value = lacking }
            return error.text
        }
    }

    /// Orders in force were written, or not.
    private func written(_ fault: String?) {
        let before = state.value.unsaved
        state.value.unsaved = fault
        if let fault {
            plane.log.error(
                """
                the orders about rollouts hold, and are not yet written, so they would end with \
                the process: \(fault); next: make room on that disk; the gateway tries again until \
                they are written
                """
            )
            saveLater()
        } else if before != nil {
            plane.log.notice("the orders about rollouts are written")
        }
    }

    private func saveLater() {
        guard !state.value.isRetrying else { return }
        state.value.isRetrying = true
        plane.perform(after: Self.retryPace) { [weak self] in self?.saveAgain() }
    }

    /// Tries to write the orders in force.
    private func saveAgain() {
        state.value.isRetrying = false
        guard state.value.unsaved != nil else { return }
        // An order that is being saved would be replaced by what is in force; a successor owns the
        // file.
        guard !state.value.isDeciding, !state.value.isClosed else { return saveLater() }
        let reached = state.value.reached
        let orders = reached.orders(plane.configuration.fileRules)
        queue.async { [self] in
            let fault = write(reached, orders: orders, changes: [], holds: true)
            plane.perform { [self] in
                // The log has said why, and the next try follows.
                guard fault == nil else { return saveLater() }
                if state.value.unsaved != nil { written(nil) }
            }
        }
    }

    private func takeEffect(
        _ orders: RolloutOrders,
        version: Int64,
        changes: [FleetOrders.Change],
        told: @escaping @Sendable (_ areAllTold: Bool) -> Void
    ) {
        let isNew = state.value.orders != orders
        state.value.orders = orders
        state.value.version = version
        let consumers = state.value.consumers
        for change in changes {
            plane.log.notice("rollout of \(change.text)")
            consumers.tookEffect(change)
        }
        guard isNew || !changes.isEmpty else { return told(true) }
        state.value.lastNumber += 1
        let number = state.value.lastNumber
        state.value.untold[number] = Untold(left: plane.loops.count, answer: told)
        plane.perform(after: Self.patience) { [self] in
            state.value.untold.removeValue(forKey: number)?.answer(false)
        }
        consumers.serve { [self] in loopTold(of: number) }
    }

    private func loopTold(of number: Int) {
        state.value.untold[number]?.left -= 1
        guard state.value.untold[number]?.left == 0 else { return }
        state.value.untold.removeValue(forKey: number)?.answer(true)
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
            state.value.whenSaved = { [self] in
                queue.async { [self] in plane.perform { saved.leave() } }
            }
            decideNext()
        }
        guard saved.wait(timeout: .now() + time) == .success else {
            throw UpgradeRefusal("an order about rollouts could not be saved in time")
        }
        return plane.queue.sync { state.value.reached }
    }

    /// Accepts orders again: the upgrade has failed.
    func reopen() { plane.perform { self.state.value.isClosed = false } }

    // MARK: A fleet

    private func decide(_ next: Waiting, note: RolloutNote, fleet: FleetAccess) {
        let (reached, rules) = (state.value.reached, plane.configuration.fileRules)
        if state.value.isAway, pend(next, note) { return }
        let known = next.call.after ?? reached.version
        asking.async { [self] in
            var ordering = FleetOrdering(fleet.database, gateway: fleet.name, reached, now: note.at)
            let result = Result { () throws(JournalError) in
                try ordering.give(next.call.request, note, rules, after: known)
            }
            plane.perform { [self, ordering] in
                decided(next, note: note, ordering: ordering, result: result)
            }
        }
    }

    private func decided(
        _ order: Waiting,
        note: RolloutNote,
        ordering: FleetOrdering,
        result: Result<FleetOrdering.Outcome, JournalError>
    ) {
        switch result {
        case .success(.given):
            state.value.isAway = false
            adopt(ordering, order)
            compare(ordering)
        case .success(.impossible(let fault)):
            adopt(ordering)
            ended(order, .impossible(fault))
        case .success(.stale), .success(.needless):
            let last = ordering.changes.last ?? state.value.lastChange
            adopt(ordering)
            ended(order, .stale(last?.text ?? "version \(ordering.orders.version)"))
        case .success(.busy):
            adopt(ordering)
            ended(
                order,
                .unsaved("nothing has changed: others write orders at the same time; try again")
            )
        case .failure(let error):
            adopt(ordering)
            state.value.isAway = true
            guard !pend(order, note) else { return }
            ended(order, .unsaved(Self.text(ofAway: error)))
        }
    }

    private static func text(ofAway error: JournalError) -> String {
        "the fleet's database did not answer, so it may have taken the order or not (\(error)); "
            + "look when it answers; until then `--all observe` and `RULE observe` work here"
    }

    /// Takes an order while the database is away, where it makes no rule refuse more clients.
    ///
    /// - Returns: whether it is taken, or can't be; otherwise it has to wait for the database.
    private func pend(_ order: Waiting, _ note: RolloutNote) -> Bool {
        var reached = state.value.reached
        do throws(RolloutOrders.Fault) {
            let rules = plane.configuration.fileRules
            guard let change = try reached.pend(order.call.request, note, rules) else {
                return false
            }
            plane.log.warning(
                """
                the fleet's database is away: this gateway alone obeys an order, and writes it \
                when the database answers, unless there is a newer one about the same
                """
            )
            state.value.reached = reached
            save(reached, [FleetOrders.Change(alone: change)], order, .untilDatabase)
        } catch {
            ended(order, .impossible(error))
        }
        return true
    }

    /// Takes what was reached at the database.
    private func adopt(_ ordering: FleetOrdering, _ order: Waiting? = nil) {
        // The successor owns the orders.
        guard !state.value.isClosed || order != nil else { return }
        let before = state.value.reached
        let changes = ordering.changes.filter { $0.version > before.version }
        state.value.reached.merge(ordering.orders, ended: ordering.ended)
        state.value.lastChange = changes.last ?? state.value.lastChange
        for pending in ordering.dropped {
            plane.log.warning(
                """
                an order that this gateway took while the database was away has ended, since the \
                fleet has a newer one: \(pending.rule ?? "all rules") \(pending.order.text) \
                (\(pending.note.text))
                """
            )
        }
        let reached = state.value.reached
        guard reached != before || order != nil else { return }
        save(reached, changes, order, .fleet(version: reached.version))
    }

    /// Finds out whether the database has other orders under the version that this gateway obeys,
    /// since a failover has lost these. The next reading takes the others.
    private func compare(_ ordering: FleetOrdering) {
        guard let seal = ordering.seal, seal.version == state.value.reached.version else { return }
        guard !ordering.isMoved, let known = state.value.seal, known.version == seal.version else {
            return state.value.seal = seal
        }
        guard known != seal else { return }
        plane.log.warning(
            """
            the fleet's database has lost order \(seal.version), which this gateway obeys, and has \
            another one of this number; this gateway takes that one; next: see `portcullis rollout`
            """
        )
        state.value.reached.doubt()
    }

    /// Writes the row of this gateway, and takes what is newer. `done` is called on the control
    /// queue, once.
    ///
    /// - Returns: whether it is done; not while another process takes over.
    func refresh(
        _ member: FleetMember,
        _ exchange: FleetExchange,
        _ done: @escaping @Sendable (Result<FleetReading, JournalError>) -> Void
    ) -> Bool {
        guard let fleet, !state.value.isClosed else { return false }
        let (reached, rules) = (state.value.reached, plane.configuration.fileRules)
        let now = UnixTime(seconds: plane.wallSeconds)
        asking.async { [self] in
            var ordering = FleetOrdering(fleet.database, gateway: fleet.name, reached, now: now)
            let result = Result { () throws(JournalError) in
                try ordering.poll(member, exchange, rules)
            }
            plane.perform { [self, ordering] in
                state.value.isAway = if case .failure = result { true } else { false }
                adopt(ordering)
                compare(ordering)
                done(result)
            }
        }
        return true
    }

    /// Reports which orders replace the settings that were just read.
    func warn() {
        if let emergency = orders.emergency {
            plane.log.warning("no rule refuses, by `rollout --all observe` (\(emergency.text))")
        }
        for problem in orders.problems(plane.configuration) { plane.log.warning("\(problem.text)") }
    }
}

extension Rollouts: RolloutTaking {
    package func take(
        _ call: RolloutRequest.Call,
        by: String,
        _ done: @escaping @Sendable (RolloutResult) -> Void
    ) {
        plane.perform { [self] in
            // The successor may have read the orders already, and owns the file afterwards.
            guard case .none = plane.upgrading else { return done(.upgrading) }
            guard state.value.waiting.count < Self.waitingMax else {
                return done(.unsaved("too many changes wait; this one is not taken"))
            }
            add(Waiting(call: call, by: by, done: done))
        }
    }

    package func lastChanges(_ done: @escaping @Sendable ([[UInt8]]?) -> Void) {
        let file = file
        guard let fleet else {
            return queue.async { done(file.lastChanges(atMost: Self.shownMax)) }
        }
        asking.async {
            do throws(JournalError) {
                done(try fleet.database.lastChanges(atMost: Self.shownMax).compactMap(\.line))
            } catch {
                // What this gateway has seen of them.
                done(file.lastChanges(atMost: Self.shownMax))
            }
        }
    }

    package func forecast(
        _ request: RolloutRequest,
        _ done: @escaping @Sendable (ForecastResult) -> Void
    ) {
        plane.perform { [self] in
            let now = UnixTime(seconds: plane.wallSeconds)
            let rules = plane.configuration.fileRules
            let version = fleet.map { _ in state.value.version }
            let asked = rules.rules.filter { request.rule == nil || $0.id == request.rule }
            guard !asked.isEmpty, let note = RolloutNote(at: now, by: "", why: "") else {
                return done(.impossible(.unknownRule))
            }
            let before = state.value.orders
            var after = before
            do throws(RolloutOrders.Fault) {
                _ = try after.take(request, note, rules)
            } catch {
                return done(.impossible(error))
            }
            let changes = asked.map { rule in
                (
                    rule: rule, from: before.standing(of: rule).rule.refusedShare(at: now),
                    to: after.standing(of: rule).rule.refusedShare(at: now)
                )
            }
            guard changes.contains(where: { $0.to > $0.from }) else {
                return done(.known(nil, order: version))
            }
            state.value.consumers.lastHour(request.rule) { report in
                guard let report else { return done(.late) }
                let forecasts = changes.compactMap { change in
                    RolloutForecast(
                        change.rule.id,
                        report,
                        from: change.from,
                        to: change.to,
                        limit: change.rule.demands.fallback?.refused
                    )
                }
                done(
                    request.rule == nil
                        ? .knownOfAll(RolloutForecasts(forecasts), order: version)
                        : .known(forecasts.first, order: version)
                )
            }
        }
    }
}

extension Rule {
    fileprivate func refusedShare(at now: UnixTime) -> Share {
        mode == .enforce ? rollout.share(at: now) : .none
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

extension FleetChange {
    /// The line of the audit; `nil` where a text is none that this program writes.
    fileprivate var line: [UInt8]? {
        FleetOrders.Change(self)?.change.line(order: version, gateway: gateway)
    }
}
