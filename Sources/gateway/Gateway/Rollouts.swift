import ConfigurationReading
import Cryptography
import Dispatch
import EventLoops
import Logging
import Proxy
import Rules
import Services
import Verification

/// The orders of operators and guards about rollouts, while the gateway runs. Changes are saved one
/// after the other; each takes effect when it is on disk.
final class Rollouts: Sendable {
    /// The most changes that wait for the one that is being saved; further ones are refused.
    private static let waitingMax = 32
    /// The most changes that `/audit` shows: the last 50.
    private static let shownMax = 50
    /// The longest wait of an answer for busy event loops: 2 s.
    private static let patience = DispatchTimeInterval.seconds(2)

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
        /// An order takes effect.
        var tookEffect: @Sendable (RolloutOrders.Change) -> Void = { _ in }
        /// The counts of a rule in the last hour; `nil` where event loops are too busy.
        var lastHour: @Sendable (String, @escaping @Sendable (Report?) -> Void) -> Void = { _, _ in
        }
    }

    private struct State {
        var orders: RolloutOrders
        var waiting: [Waiting] = []
        var isSaving = false
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
    /// `nil` without a store, and then no rule verifies.
    private let file: RolloutFile?
    private let queue = DispatchQueue(label: "portcullis.rollout")
    private let state: QueueBound<State>

    init(_ plane: ControlPlane, _ orders: RolloutOrders, _ file: RolloutFile?) {
        self.plane = plane
        self.file = file
        state = QueueBound(State(orders: orders), on: plane.queue)
    }

    func start(_ consumers: Consumers) { state.value.consumers = consumers }

    /// The orders in force.
    var orders: RolloutOrders { state.value.orders }

    /// Whether an order waits or is being saved, or none is accepted.
    var isBusy: Bool {
        !state.value.waiting.isEmpty || state.value.isSaving || state.value.isClosed
    }

    func add(_ order: Waiting) {
        state.value.waiting.append(order)
        saveNext()
    }

    private func saveNext() {
        guard !state.value.isSaving else { return }
        guard !state.value.waiting.isEmpty else {
            let saved = state.value.whenSaved
            state.value.whenSaved = nil
            saved?()
            return
        }
        let next = state.value.waiting.removeFirst()
        let now = UnixTime(seconds: plane.wallSeconds)
        guard let note = RolloutNote(at: now, by: next.by, why: next.call.why), let file else {
            next.done(.impossible(.unknownRule))
            return saveNext()
        }
        var orders = state.value.orders
        let change: RolloutOrders.Change
        do throws(RolloutOrders.Fault) {
            change = try orders.take(next.call.request, note, plane.configuration.fileRules)
        } catch {
            next.done(.impossible(error))
            return saveNext()
        }
        state.value.isSaving = true
        queue.async { [self, orders] in
            let result = Result { () throws(RolloutFile.Fault) in try file.save(orders, change) }
            plane.perform { [self] in
                state.value.isSaving = false
                switch result {
                case .success: takeEffect(orders, change, next.done)
                case .failure(let fault) where note.isGuards:
                    // A full disk must not prevent an app from working.
                    plane.log.error("the guard's order holds until the next start: \(fault.text)")
                    takeEffect(orders, change, next.done)
                case .failure(let fault):
                    plane.log.error("a change of rollouts has no effect: \(fault.text)")
                    next.done(.unsaved(fault.text))
                }
                saveNext()
            }
        }
    }

    private func takeEffect(
        _ orders: RolloutOrders,
        _ change: RolloutOrders.Change,
        _ done: @escaping @Sendable (RolloutResult) -> Void
    ) {
        state.value.orders = orders
        let rule = change.rule ?? "all rules"
        let why = change.note.why.isEmpty ? "" : ": \(change.note.why)"
        plane.log.notice(
            "rollout of \(rule): \(change.from) → \(change.to), \(change.note.by)\(why)"
        )
        let consumers = state.value.consumers
        consumers.tookEffect(change)
        state.value.lastNumber += 1
        let number = state.value.lastNumber
        state.value.untold[number] = Untold(left: plane.loops.count) {
            done(.changed(change, areAllLoopsTold: $0))
        }
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
    /// - Returns: the orders in force.
    func close(within time: DispatchTimeInterval) throws(UpgradeRefusal) -> RolloutOrders {
        let saved = DispatchGroup()
        saved.enter()
        plane.perform { [self] in
            state.value.isClosed = true
            state.value.whenSaved = { saved.leave() }
            saveNext()
        }
        guard saved.wait(timeout: .now() + time) == .success else {
            throw UpgradeRefusal("an order about rollouts could not be saved in time")
        }
        return plane.queue.sync { orders }
    }

    /// Accepts orders again: the upgrade has failed.
    func reopen() { plane.perform { self.state.value.isClosed = false } }

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
                return done(.unsaved("too many changes wait for the disk"))
            }
            add(Waiting(call: call, by: by, done: done))
        }
    }

    package func lastChanges(_ done: @escaping @Sendable ([[UInt8]]?) -> Void) {
        guard let file else { return done([]) }
        queue.async { done(file.lastChanges(atMost: Self.shownMax)) }
    }

    package func forecast(
        _ request: RolloutRequest,
        _ done: @escaping @Sendable (ForecastResult) -> Void
    ) {
        plane.perform { [self] in
            let now = UnixTime(seconds: plane.wallSeconds)
            let rules = plane.configuration.fileRules
            guard let id = request.rule, let rule = rules.rules.first(where: { $0.id == id }),
                let note = RolloutNote(at: now, by: "", why: "")
            else { return done(request.rule == nil ? .known(nil) : .impossible(.unknownRule)) }
            var orders = state.value.orders
            let before = orders.standing(of: rule).rule
            do throws(RolloutOrders.Fault) {
                _ = try orders.take(request, note, rules)
            } catch {
                return done(.impossible(error))
            }
            let after = orders.standing(of: rule).rule
            state.value.consumers.lastHour(id) { report in
                guard let report else { return done(.late) }
                let forecast = RolloutForecast(
                    report,
                    from: before.refusedShare(at: now),
                    to: after.refusedShare(at: now),
                    limit: rule.demands.fallback?.refused
                )
                done(.known(forecast))
            }
        }
    }
}

extension Rule {
    fileprivate func refusedShare(at now: UnixTime) -> Share {
        mode == .enforce ? rollout.share(at: now) : .none
    }
}
