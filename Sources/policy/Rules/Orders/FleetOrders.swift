/// The orders that one gateway of a fleet obeys.
///
/// The fleet agrees on one state after the other, each with a version: the database compares and
/// sets them. A gateway takes only newer ones. An order that it was given while the database was
/// away is pending: this gateway alone obeys it, until it is written or something newer is found.
///
/// A value. A gateway without a fleet has version 0 and nothing pending.
package struct FleetOrders: Equatable, Sendable {
    /// An order that the database does not have yet.
    package struct Pending: Hashable, Sendable {
        /// `nil` for all rules, which then observe.
        package let rule: String?
        package let order: RolloutOrder
        package let note: RolloutNote

        package init(rule: String?, order: RolloutOrder, note: RolloutNote) {
            (self.rule, self.order, self.note) = (rule, order, note)
        }

        package var request: RolloutRequest {
            rule.map { .order(order, rule: $0) } ?? .observeAll
        }

        /// Whether a change that this gateway finds in the database ends the order.
        ///
        /// The database may have taken that change before this gateway was given the order, and
        /// this gateway heard of it later. An older change does not undo what refuses fewer
        /// clients. The times are those of the gateways' clocks; within one second the order holds.
        fileprivate func isReplaced(by change: RolloutOrders.Change) -> Bool {
            guard change.rule == rule else { return false }
            // The time of a state that was written back says nothing about its orders.
            guard order == .observe, change.note.by != RolloutNote.gatewayName else { return true }
            return change.note.at > note.at
        }
    }

    /// A change that the fleet has made.
    package struct Change: Equatable, Sendable {
        package let version: Int64
        package let change: RolloutOrders.Change
        /// The gateway that took the order.
        package let gateway: String

        package init(version: Int64, _ change: RolloutOrders.Change, gateway: String) {
            (self.version, self.change, self.gateway) = (version, change, gateway)
        }

        /// Whether it only writes back what a gateway at this version knows, and orders nothing.
        fileprivate func isKnown(at known: Int64) -> Bool {
            change.note.by == RolloutNote.gatewayName && version - 1 <= known
        }
    }

    /// The version of ``agreed``; 0 before the fleet has agreed on any.
    package private(set) var version: Int64
    package private(set) var agreed: RolloutOrders
    /// At most one for a rule, and one for all.
    package private(set) var pending: [Pending]

    package init(
        version: Int64 = 0,
        agreed: RolloutOrders = RolloutOrders(),
        pending: [Pending] = []
    ) {
        (self.version, self.agreed, self.pending) = (version, agreed, pending)
    }

    /// Whether these are orders of a gateway that has had no fleet until now.
    package var areOfOneGateway: Bool { version == 0 && !agreed.isEmpty }

    /// The orders in force.
    ///
    /// - rules: the rules of the files.
    package func orders(_ rules: RuleSet) -> RolloutOrders {
        var orders = agreed
        for order in pending {
            do throws(RolloutOrders.Fault) {
                _ = try orders.take(order.request, note: order.note, rules: rules)
            } catch {
                // The rule is gone, or verifies nothing: it refuses no client.
                continue
            }
        }
        return orders
    }

    /// Takes a newer state of the fleet.
    ///
    /// - version: greater than ``version``.
    /// - changes: those since ``version``.
    /// - Returns: pending orders that have ended, since the fleet has a later order about the same
    ///   rule, or about all rules where the pending one is about all.
    package mutating func take(
        version: Int64,
        _ orders: RolloutOrders,
        _ changes: [Change]
    ) -> [Pending] {
        precondition(version > self.version, "FleetOrders: only a newer state is taken")
        if areOfOneGateway {
            // What this gateway alone was ordered, the others have not heard of.
            pending += agreed.pending.filter { order in
                order.rule.map { orders.entries[$0] == nil } ?? (orders.emergency == nil)
            }
        }
        let given = changes.filter { !$0.isKnown(at: self.version) }
        self.version = version
        agreed = orders
        let ended = pending.filter { order in given.contains { order.isReplaced(by: $0.change) } }
        end(ended)
        return ended
    }

    /// The fleet has another state of this version: a failover has lost the one that is here. The
    /// next one that is taken may have the same version.
    package mutating func doubt() {
        version = max(version - 1, 0)
        // Otherwise they would count as given to this gateway alone.
        if version == 0 { agreed = RolloutOrders() }
    }

    /// This gateway has written a state.
    package mutating func wrote(version: Int64, _ orders: RolloutOrders) {
        self.version = max(self.version, version)
        agreed = orders
    }

    /// Pending orders have ended: they were written, or something newer was found.
    package mutating func end(_ orders: [Pending]) {
        pending.removeAll { orders.contains($0) }
    }

    /// Takes the state that was reached beside this one, from an earlier state of this one.
    ///
    /// - ended: the pending orders that have ended there.
    package mutating func merge(_ other: FleetOrders, ended: [Pending]) {
        let isOfOneGateway = areOfOneGateway
        if other.version > version { (version, agreed) = (other.version, other.agreed) }
        if isOfOneGateway { pending += other.pending.filter { !pending.contains($0) } }
        end(ended)
    }

    /// Takes an order that the database can't be told now.
    ///
    /// - Returns: the change for the audit log; `nil` where the order may refuse clients that are
    ///   not refused now, so it has to wait for the database.
    package mutating func pend(
        _ request: RolloutRequest,
        note: RolloutNote,
        rules: RuleSet
    ) throws(RolloutOrders.Fault) -> RolloutOrders.Change? {
        let order: Pending
        switch request {
        case .observeAll: order = Pending(rule: nil, order: .observe, note: note)
        case .order(.observe, let id): order = Pending(rule: id, order: .observe, note: note)
        case .order(.atMost(let share), let id):
            order = Pending(rule: id, order: .atMost(share), note: note)
        case .resumeAll:
            // Only an emergency that the fleet has never heard of can be taken back here.
            guard agreed.emergency == nil, pending.contains(where: { $0.rule == nil }) else {
                return nil
            }
            pending.removeAll { $0.rule == nil }
            return RolloutOrders.Change(
                rule: nil,
                from: "observe",
                to: "each rule's own",
                note: note
            )
        case .order(.share, _), .order(.off, _), .file: return nil
        }
        var orders = orders(rules)
        let change = try orders.take(request, note: note, rules: rules)
        pending.removeAll { $0.rule == order.rule }
        pending.append(order)
        return change
    }
}

extension RolloutOrders {
    fileprivate var pending: [FleetOrders.Pending] {
        let all = emergency.map { FleetOrders.Pending(rule: nil, order: .observe, note: $0) }
        let single = entries.sorted { $0.key < $1.key }.map { id, entry in
            FleetOrders.Pending(rule: id, order: entry.order, note: entry.note)
        }
        return [all].compactMap(\.self) + single
    }
}
