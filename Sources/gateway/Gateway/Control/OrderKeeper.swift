import Dispatch
import EventLoops
import Logging
import Rules

/// A place that keeps orders for the next start, and their audit. It waits for the disk.
protocol OrderStore: Sendable {
    /// Appends the changes to the audit log, then replaces the orders. Where it fails, the audit
    /// log has none of the changes.
    func save(
        _ orders: FleetOrders,
        inForce: RolloutOrders,
        _ changes: [FleetOrders.Change]
    ) throws(RolloutFile.Fault)
    /// The last lines of the audit log, the oldest first; `nil` where it can't be read.
    func lastChanges(atMost count: Int) -> [[UInt8]]?
}

extension RolloutFile: OrderStore {}

/// Keeps the orders on disk. What is in force and can't be written is tried again until it is.
///
/// Called on the control queue. It waits for the disk on a queue of its own.
final class OrderKeeper: Sendable {
    /// The interval of tries to write orders that hold and are not on disk.
    private static let retryPace = DispatchTimeInterval.seconds(2)
    /// The most changes that wait for the audit log while it can't be written, the latest.
    private static let unauditedMax = 64

    /// Orders to keep.
    struct Kept: Sendable {
        /// What was reached.
        let reached: FleetOrders
        /// The same under the rules of the configuration.
        let orders: RolloutOrders
    }

    private struct State {
        /// Why the orders in force are not on disk; `nil` where they are.
        var unsaved: String?
        /// A try to write them is due.
        var isRetrying = false
        /// The orders in force; `nil` while they must not be written.
        var current: @Sendable () -> Kept? = { nil }
    }

    private let plane: ControlPlane
    private let store: any OrderStore
    private let queue = DispatchQueue(label: "portcullis.rollout")
    /// Changes in force that the audit log does not have, on ``queue``.
    private let unaudited: QueueBound<[FleetOrders.Change]>
    private let state: QueueBound<State>

    /// - unsaved: why the orders of the start are not on disk; `nil` where they are.
    init(_ plane: ControlPlane, _ store: any OrderStore, unsaved: String?) {
        (self.plane, self.store) = (plane, store)
        unaudited = QueueBound([], on: queue)
        state = QueueBound(State(unsaved: unsaved), on: plane.queue)
    }

    /// - current: the orders in force; `nil` while they must not be written. Called on the control
    ///   queue.
    func start(current: @escaping @Sendable () -> Kept?) {
        state.value.current = current
        if unsaved != nil { saveLater() }
    }

    /// Why the orders in force are not on disk; `nil` where they are.
    var unsaved: String? { state.value.unsaved }

    /// Writes the orders and their changes. `done` is called on the control queue, with why they
    /// are not written, or `nil`.
    ///
    /// - holds: whether the changes are in force also where they can't be written.
    func save(
        _ kept: Kept,
        _ changes: [FleetOrders.Change],
        holds: Bool,
        done: @escaping @Sendable (_ fault: String?) -> Void
    ) {
        queue.async { [self] in
            let fault = write(kept, changes, holds: holds)
            plane.perform { [self] in
                if fault == nil || holds { written(fault) }
                done(fault)
            }
        }
    }

    /// Calls `done` on the control queue after all saves that were asked for.
    func afterSaves(_ done: @escaping @Sendable () -> Void) {
        queue.async { [plane] in plane.perform(done) }
    }

    /// Reads the last lines of the audit log; `done` is called on another queue.
    func lastChanges(atMost count: Int, _ done: @escaping @Sendable ([[UInt8]]?) -> Void) {
        queue.async { [store] in done(store.lastChanges(atMost: count)) }
    }

    /// - Returns: why they are not written; `nil` where they are.
    private func write(_ kept: Kept, _ changes: [FleetOrders.Change], holds: Bool) -> String? {
        let lacking = Array((unaudited.value + changes).suffix(Self.unauditedMax))
        do throws(RolloutFile.Fault) {
            try store.save(kept.reached, inForce: kept.orders, lacking)
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
        guard let kept = state.value.current() else { return saveLater() }
        queue.async { [self] in
            let fault = write(kept, [], holds: true)
            plane.perform { [self] in
                // The log has said why, and the next try follows.
                guard fault == nil else { return saveLater() }
                if state.value.unsaved != nil { written(nil) }
            }
        }
    }
}
