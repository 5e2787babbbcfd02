import ConfigurationReading
import Encodings
import EventLoops
import Glibc
import KeyStore
import Logging
import PostgreSQLKeyStore
import Rules
import Signatures

/// The orders that a gateway begins with: those of its predecessor, or those that it has kept, and
/// in a fleet newer ones where its database answers.
struct OrdersAtStart {
    let orders: FleetOrders
    /// The orders in force under the rules of the configuration.
    let inForce: RolloutOrders
    let store: any OrderStore
    let fleet: FleetAccess?
    /// Why the orders are not on disk; `nil` where they are.
    let unsaved: String?
}

extension OrdersAtStart {
    /// Waits for the database of a fleet.
    ///
    /// - kept: those that the gateway has kept.
    init(
        _ configuration: GatewayConfiguration,
        from predecessor: Predecessor?,
        kept: FleetOrders,
        log: Logger
    ) throws(GatewayError) {
        let file = RolloutFile(configuration)
        store = file
        fleet = FleetAccess(configuration)
        // The predecessor may have an order that its file does not have.
        let handed = try predecessor?.state?.handed.orders(isInFleet: fleet != nil)
        var (orders, unsaved): (FleetOrders, String?) = (handed ?? kept, nil)
        let rules = configuration.fileRules
        if let found = fleet?.newerOrders(than: orders, log) {
            do throws(RolloutFile.Fault) {
                try file.save(found.orders, inForce: found.orders.orders(rules), found.changes)
            } catch {
                unsaved = error.text
                log.error("the fleet's orders can't be kept for another start: \(error.text)")
            }
            orders = found.orders
        }
        // The predecessor writes no more. Its disk may have been full.
        if handed != nil, RolloutFile.kept(of: configuration).orders != orders {
            unsaved = unsaved ?? "the process before could not write them"
        }
        (self.orders, self.unsaved) = (orders, unsaved)
        inForce = orders.orders(rules)
    }
}

extension HandoverState {
    fileprivate func orders(isInFleet: Bool) throws(GatewayError) -> FleetOrders {
        do throws(JSONError) {
            guard isInFleet else {
                return FleetOrders(agreed: try RolloutOrders(json: orders.span))
            }
            return try FleetOrders(json: orders.span)
        } catch {
            throw Predecessor.garbled
        }
    }
}

extension FleetAccess {
    /// The orders of the database where they are others than those that are known; `nil` where it
    /// has no others, or can't be read.
    fileprivate func newerOrders(than known: FleetOrders, _ log: Logger) -> FleetOrdering? {
        do throws(JournalError) {
            let found = try ordering(after: known)
            guard found.orders == known else { return found }
            guard let other = try replacement(of: known) else { return nil }
            log.warning(
                """
                the fleet's database has lost order \(known.version), which this gateway has \
                kept, and has another one of this number; this gateway takes that one; next: see \
                `portcullis rollout`
                """
            )
            return other
        } catch {
            log.warning(
                """
                the fleet's orders can't be read; those that this gateway has kept hold, version \
                \(known.version): \(error)
                """
            )
            return nil
        }
    }

    private func ordering(after known: FleetOrders) throws(JournalError) -> FleetOrdering {
        let now = UnixTime(seconds: Int64(time(nil)))
        var ordering = FleetOrdering(database, gateway: name, known, now: now)
        try ordering.read()
        return ordering
    }

    /// The orders of the database under the version of these, where they are others: a failover
    /// that this process did not see has lost these. `nil` where they are the same.
    private func replacement(of orders: FleetOrders) throws(JournalError) -> FleetOrdering? {
        guard orders.version > 0 else { return nil }
        var doubted = orders
        doubted.doubt()
        let found = try ordering(after: doubted)
        let isOther = found.orders.agreed != orders.agreed
        return isOther && found.orders.version == orders.version ? found : nil
    }
}
