import Encodings
package import KeyStore
package import PostgreSQLKeyStore
package import Rules
package import Signatures

/// Reads and writes the fleet's orders. Every call blocks until the database has answered; not on
/// the control queue.
///
/// A value: it begins with the orders that the gateway knows, and ends with those that it reached.
package struct FleetOrdering: Sendable {
    /// What became of an order.
    package enum Outcome: Sendable {
        /// The fleet has agreed on it.
        case given(RolloutOrders.Change)
        case impossible(RolloutOrders.Fault)
        /// There is a newer order than the caller knows, which may refuse clients; nothing has
        /// changed.
        case stale
        /// A guard has nothing to do: the rule refuses no client any more, or has a new order.
        case needless
        /// Others were faster each time; nothing has changed.
        case busy
    }

    /// Names a state of the orders. The version alone does not: a failover may lose one, and the
    /// next order gets its number.
    package struct Seal: Equatable, Sendable {
        let version: Int64
        let ticket: [UInt8]
    }

    /// The most tries where others write at the same moment.
    private static let triesMax = 8

    private let database: FleetDatabase
    /// This gateway's name.
    private let gateway: String
    private let now: UnixTime
    package private(set) var orders: FleetOrders
    /// The changes since the start that were found or made, the oldest first.
    package private(set) var changes: [FleetOrders.Change] = []
    /// Pending orders that have ended without being written, since there is something newer.
    package private(set) var dropped: [FleetOrders.Pending] = []
    private var written: [FleetOrders.Pending] = []
    private var version: Int64 = 0
    /// The seal of the database's orders, while they have the version of ``orders``.
    private(set) var seal: Seal?
    /// Whether orders were taken from the database, or written there, since the start.
    private(set) var isMoved = false

    package init(_ database: FleetDatabase, gateway: String, _ orders: FleetOrders, now: UnixTime) {
        (self.database, self.gateway) = (database, gateway)
        (self.orders, self.now) = (orders, now)
    }

    var ended: [FleetOrders.Pending] { written + dropped }

    // MARK: Reading

    /// Writes the row of this gateway, and takes what there is.
    mutating func poll(
        _ member: FleetMember,
        _ exchange: FleetExchange,
        rules: RuleSet
    ) throws(JournalError) -> FleetReading {
        let reading = try database.poll(member, after: orders.version, exchange)
        try take(reading)
        try settle(rules)
        return reading
    }

    /// Takes the newest orders.
    package mutating func read() throws(JournalError) {
        try take(try database.reading(after: orders.version))
    }

    private mutating func take(_ reading: FleetReading) throws(JournalError) {
        version = reading.version
        defer {
            if version == orders.version {
                seal = reading.ticket.map { Seal(version: reading.version, ticket: $0) }
            }
        }
        // A database that was put back to an older state changes nothing here.
        guard reading.version > orders.version, let text = reading.orders else { return }
        let agreed: RolloutOrders
        do throws(JSONError) {
            agreed = try RolloutOrders(json: Array(text.utf8).span)
        } catch {
            throw JournalError(
                .unusable,
                "the fleet's orders can't be understood: \(error.description)",
                next: "install the version of portcullis that the other gateways have"
            )
        }
        let found = reading.changes.compactMap(FleetOrders.Change.init)
        dropped += orders.take(version: reading.version, agreed, found)
        isMoved = true
        changes += found
    }

    // MARK: Writing

    /// Writes what the database lacks: the orders of this gateway where they are newer than the
    /// database's, and pending orders.
    package mutating func settle(_ rules: RuleSet) throws(JournalError) {
        if version < orders.version || version == 0 && orders.areOfOneGateway {
            let own = orders.version > 0 ? "version \(orders.version)" : "its own"
            let note = RolloutNote(
                at: now,
                by: RolloutNote.gatewayName,
                why: "the database had older orders"
            )
            guard let note else { return }
            let change = RolloutOrders.Change(
                rule: nil,
                from: "version \(version)",
                to: "\(own) of \(gateway)",
                note: note
            )
            guard try write(orders.agreed, change) else { return }
        }
        for order in orders.pending {
            var next = orders.agreed
            let change: RolloutOrders.Change
            do throws(RolloutOrders.Fault) {
                change = try next.take(order.request, note: order.note, rules: rules)
            } catch {
                // The rule is gone, or verifies nothing: the order would have no effect.
                end(order)
                continue
            }
            if next != orders.agreed {
                guard try write(next, change) else { return }
            }
            end(order)
        }
    }

    private mutating func end(_ order: FleetOrders.Pending) {
        written.append(order)
        orders.end([order])
    }

    /// Gives an order.
    ///
    /// - known: the version that the caller knows; an order that may refuse clients is stale after
    ///   a newer one.
    package mutating func give(
        _ request: RolloutRequest,
        _ note: RolloutNote,
        rules: RuleSet,
        after known: Int64
    ) throws(JournalError) -> Outcome {
        for _ in 0..<Self.triesMax {
            try read()
            try settle(rules)
            // Another writer was faster; read again.
            guard version == orders.version, orders.pending.isEmpty else { continue }
            guard !request.mayRefuse || version == known else { return .stale }
            if note.isGuards {
                // What was counted before an order about the rule is no reason to fall after it.
                let isOrdered = changes.contains { $0.change.rule == request.rule }
                guard !isOrdered, isEnforced(request.rule, rules) else { return .needless }
            }
            var next = orders.agreed
            let change: RolloutOrders.Change
            do throws(RolloutOrders.Fault) {
                change = try next.take(request, note: note, rules: rules)
            } catch {
                return .impossible(error)
            }
            if try write(next, change) { return .given(change) }
        }
        return .busy
    }

    private func isEnforced(_ id: String?, _ rules: RuleSet) -> Bool {
        let rule = rules.rules.first { $0.id == id }
        return rule.map { orders.orders(rules).standing(of: $0).rule.mode == .enforce } ?? false
    }

    /// Compares and sets.
    ///
    /// - Returns: whether the orders are the fleet's now; otherwise another writer was faster.
    private mutating func write(
        _ next: RolloutOrders,
        _ change: RolloutOrders.Change
    ) throws(JournalError) -> Bool {
        let row = FleetChange(
            version: orders.version + 1,
            rule: change.rule,
            from: change.from,
            to: change.to,
            note: FleetChange.Note(
                at: change.note.at.seconds,
                by: change.note.by,
                why: change.note.why,
                gateway: gateway
            )
        )
        let isSet: Bool
        do throws(JournalError) {
            isSet = try database.set(
                String(decoding: next.json, as: UTF8.self),
                row,
                replacing: version
            )
        } catch {
            guard error.isOutage else { throw error }
            // It is unknown whether it was set. The next connection says so.
            let changes = try database.reading(after: orders.version).changes
            isSet = changes.contains { $0.ticket == row.ticket }
        }
        guard isSet else { return false }
        version = row.version
        seal = Seal(version: row.version, ticket: row.ticket)
        isMoved = true
        orders.wrote(version: row.version, next)
        changes.append(FleetOrders.Change(version: row.version, change, gateway: gateway))
        return true
    }
}

extension FleetOrders.Change {
    /// `nil` where a text is none that this program writes.
    init?(_ row: FleetChange) {
        let at = UnixTime(seconds: row.note.at)
        guard let note = RolloutNote(at: at, by: row.note.by, why: row.note.why) else {
            return nil
        }
        self.init(
            version: row.version,
            RolloutOrders.Change(rule: row.rule, from: row.from, to: row.to, note: note),
            gateway: row.note.gateway
        )
    }
}
