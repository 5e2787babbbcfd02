import ConfigurationReading
import Dispatch
import KeyStore
import Logging
import PostgreSQLKeyStore
import Rules
import Services
import Signatures

// Orders of a fleet: the database compares and sets them.
extension Rollouts {
    func decide(_ next: WaitingOrder, note: RolloutNote, fleet: FleetAccess) {
        let (reached, rules) = (state.value.reached, plane.configuration.fileRules)
        if state.value.isAway, pend(next, note) { return }
        let known = next.call.after ?? reached.version
        asking.async { [self] in
            var ordering = FleetOrdering(fleet.database, gateway: fleet.name, reached, now: note.at)
            let result = Result { () throws(JournalError) in
                try ordering.give(next.call.request, note, rules: rules, after: known)
            }
            plane.perform { [self, ordering] in
                decided(next, note: note, ordering: ordering, result: result)
            }
        }
    }

    private func decided(
        _ order: WaitingOrder,
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
    private func pend(_ order: WaitingOrder, _ note: RolloutNote) -> Bool {
        var reached = state.value.reached
        do throws(RolloutOrders.Fault) {
            let rules = plane.configuration.fileRules
            guard let change = try reached.pend(order.call.request, note: note, rules: rules) else {
                return false
            }
            plane.log.warning(
                """
                the fleet's database is away: this gateway alone obeys an order, and writes it \
                when the database answers, unless there is a newer one about the same
                """
            )
            state.value.reached = reached
            save(
                reached,
                [FleetOrders.Change(alone: change)],
                by: order,
                reach: .untilDatabase
            )
        } catch {
            ended(order, .impossible(error))
        }
        return true
    }

    /// Takes what was reached at the database.
    private func adopt(_ ordering: FleetOrdering, _ order: WaitingOrder? = nil) {
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
        save(reached, changes, by: order, reach: .fleet(version: reached.version))
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
        done: @escaping @Sendable (Result<FleetReading, JournalError>) -> Void
    ) -> Bool {
        guard let fleet, !state.value.isClosed else { return false }
        let (reached, rules) = (state.value.reached, plane.configuration.fileRules)
        let now = UnixTime(seconds: plane.wallSeconds)
        asking.async { [self] in
            var ordering = FleetOrdering(fleet.database, gateway: fleet.name, reached, now: now)
            let result = Result { () throws(JournalError) in
                try ordering.poll(member, exchange, rules: rules)
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
}
