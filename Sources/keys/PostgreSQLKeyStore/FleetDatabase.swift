internal import Cryptography
package import KeyStore

/// What the gateways of one database know of each other: the orders of operators, and which
/// gateways there are.
///
/// It has a connection of its own, so that nothing here makes a request wait. Every call blocks
/// until the database has answered, at most for `statement_timeout` and the time to connect.
package final class FleetDatabase: Sendable {
    /// The most changes that are read at once, and the most rows that are shown.
    package static let changesMax = 1_000
    /// The most changes that the audit keeps.
    private static let keptChanges: Int64 = 10_000
    /// The most gateways and drained names that are read.
    private static let membersMax: Int64 = 256
    /// The time after which the row of a gateway that is silent is removed, in seconds.
    static let memberSeconds: Int64 = 86_400
    /// The time after which another process may have a silent gateway's name, in seconds.
    static let silenceSeconds: Int64 = 10

    /// The longest time that a transaction takes to commit what it has written, in seconds.
    private static let commitSeconds: Int64 = 5
    /// The most counts of guards that are read at once, at some 3 KiB each.
    private static let countsMax: Int64 = 2_048

    /// The second of Unix time, by the clock of the database.
    static let now = "extract(epoch FROM now())::bigint"

    let link: DatabaseLink

    /// Connects at the first call.
    package init(_ settings: PostgreSQLSettings) { link = DatabaseLink(settings) }

    package func close() { link.close() }

    /// The state of its connection. Never waits.
    package var statistics: DatabaseStatistics.Connection {
        link.look()
        return link.tally.figures(of: .fleet)
    }

    // MARK: Orders

    /// Writes the row of this gateway, and reads what there is.
    ///
    /// - version: the version that the gateway knows; orders and changes after it are read.
    package func poll(
        _ member: FleetMember,
        after version: Int64,
        _ exchange: FleetExchange = FleetExchange()
    ) throws(JournalError) -> FleetReading {
        let own = [
            DatabaseStatement(
                """
                INSERT INTO gateways (instance, name, program, address, started_at, seen_at,
                    order_version, pending, rules_digest, standing, clients)
                VALUES ($1, $2, $3, $4, $5, \(Self.now), $6, $7, $8, $9, $10)
                ON CONFLICT (instance) DO UPDATE SET seen_at = \(Self.now), order_version = $6,
                    pending = $7, rules_digest = $8, standing = $9, clients = $10
                    WHERE gateways.standing <> '\(FleetMember.ended)'
                """,
                [
                    .number(member.instance), .text(member.name), .text(member.program),
                    .text(member.address), .number(member.startedAt), .number(member.orders),
                    .number(member.pending), .bytes(member.rulesDigest), .text(member.standing),
                    .number(member.clients),
                ]
            ),
            DatabaseStatement(
                """
                DELETE FROM gateways WHERE seen_at < \(Self.now) - \(Self.memberSeconds)
                    OR name = $1 AND instance <> $2 AND (standing = '\(FleetMember.ended)'
                        OR seen_at < \(Self.now) - \(Self.silenceSeconds))
                """,
                [.text(member.name), .number(member.instance)]
            ),
        ]
        let counts = exchange.counts.map { Self.insert($0, of: member.instance) }
        // Answers name clients, so they go in time, whether or not an operator asks again.
        let tidying = ["guard_counts", "fleet_questions", "fleet_answers"].map { table in
            DatabaseStatement("DELETE FROM \(table) WHERE ends_at < \(Self.now)")
        }
        return try read(
            own + counts + tidying,
            after: version,
            then: Self.select(exchange, for: member.instance)
        ) { (rows, reading) throws(JournalError) in
            try Self.take(rows, exchange, into: &reading)
        }
    }

    // MARK: Counts of guards

    private static func insert(_ count: FleetCount, of instance: Int64) -> DatabaseStatement {
        DatabaseStatement(
            """
            INSERT INTO guard_counts (rule, slot, instance, span, since, written_at, ends_at,
                passed, refused, broken)
            VALUES ($1, $2, $3, $4, $5, \(now), \(now) + 2 * $4, $6, $7, $8)
            ON CONFLICT (rule, slot, instance) DO UPDATE SET span = $4, since = $5,
                written_at = \(now), ends_at = \(now) + 2 * $4, passed = $6, refused = $7,
                broken = $8
            """,
            [
                .text(count.rule), .number(count.slot), .number(instance), .number(count.span),
                .number(count.since), .bytes(count.sketches.passed), .bytes(count.sketches.refused),
                .bytes(count.sketches.broken),
            ]
        )
    }

    private static func select(
        _ exchange: FleetExchange,
        for instance: Int64
    ) -> [DatabaseStatement] {
        let counts = DatabaseStatement(
            """
            SELECT rule, slot, span, since, passed, refused, broken FROM guard_counts
            WHERE written_at >= $1 AND instance <> $2 ORDER BY written_at DESC LIMIT $3
            """,
            [.number(exchange.readAt - commitSeconds), .number(instance), .number(countsMax)]
        )
        let questions = DatabaseStatement(
            """
            SELECT id, about FROM fleet_questions WHERE asker <> $1 AND ends_at >= \(now)
            ORDER BY id DESC LIMIT $2
            """,
            [.number(instance), .number(questionsMax)]
        )
        let time = DatabaseStatement("SELECT \(now)")
        let limits = LimitStatement.statements(exchange, since: exchange.readAt - commitSeconds)
        guard exchange.wantsSecret else { return [counts, time, questions] + limits }
        let secret = [
            DatabaseStatement(
                """
                INSERT INTO secrets (name, secret) VALUES ('guards', $1)
                ON CONFLICT (name) DO NOTHING
                """,
                [.bytes(RandomBytes.make(count: 32))]
            ), DatabaseStatement("SELECT secret FROM secrets WHERE name = 'guards'"),
        ]
        return [counts, time, questions] + secret + limits
    }

    private static func take(
        _ rows: ArraySlice<DatabaseRows>,
        _ exchange: FleetExchange,
        into reading: inout FleetReading
    ) throws(JournalError) {
        let found = Array(rows)
        let limitsAt = exchange.wantsSecret ? 5 : 3
        guard found.count > limitsAt else {
            throw JournalError.damaged("a statement without an answer")
        }
        reading.counts = try found[0].map { (row) throws(JournalError) in
            FleetCount(
                rule: row.text(0) ?? "",
                slot: try row.present(1),
                span: try row.present(2),
                since: try row.present(3),
                sketches: FleetCount.Sketches(
                    passed: row.bytes(4) ?? [],
                    refused: row.bytes(5) ?? [],
                    broken: row.bytes(6) ?? []
                )
            )
        }
        reading.now = try found[1][0].present(0)
        for row in found[2] {
            let question = FleetQuestion(try row.present(0), row.text(1) ?? "")
            if let question { reading.questions.append(question) }
        }
        if exchange.wantsSecret { reading.secret = found[4][0].bytes(0) }
        try LimitStatement.read(found[limitsAt...], exchange, into: &reading)
    }

    /// Reads what there is.
    package func reading(after version: Int64) throws(JournalError) -> FleetReading {
        try read([], after: version)
    }

    private func read(
        _ first: [DatabaseStatement],
        after version: Int64,
        then last: [DatabaseStatement] = [],
        _ take: (ArraySlice<DatabaseRows>, inout FleetReading) throws(JournalError) -> Void = {
            _,
            _ in
        }
    ) throws(JournalError) -> FleetReading {
        let rows = try link.ask(
            first + [
                DatabaseStatement(
                    """
                    SELECT version, CASE WHEN version > $1 THEN orders END, (
                        SELECT ticket FROM rollout_changes AS made
                        WHERE made.version = rollout_state.version)
                    FROM rollout_state WHERE id = 1
                    """,
                    [.number(version)]
                ), Self.changes(after: version, most: Self.changesMax),
                DatabaseStatement(
                    """
                    SELECT instance, name, program, address, started_at, order_version, pending,
                        rules_digest, standing, \(Self.now) - seen_at, clients
                    FROM gateways ORDER BY name, started_at LIMIT $1
                    """,
                    [.number(Self.membersMax)]
                ),
                DatabaseStatement(
                    "SELECT name, at, actor, why FROM drains ORDER BY name LIMIT $1",
                    [.number(Self.membersMax)]
                ),
            ] + last
        )
        let found = rows.dropFirst(first.count).prefix(4).map(\.self)
        guard found.count == 4, found[0].count == 1 else {
            throw JournalError.damaged("the table of the orders is empty")
        }
        var reading = FleetReading(version: try found[0][0].present(0))
        reading.orders = found[0][0].text(1)
        reading.ticket = found[0][0].bytes(2)
        reading.changes = try Self.changes(found[1])
        try Self.takeGateways(found[2], drains: found[3], into: &reading)
        try take(rows.dropFirst(first.count + 4), &reading)
        return reading
    }

    /// Takes the gateways and drains whose names are names.
    private static func takeGateways(
        _ members: DatabaseRows,
        drains: DatabaseRows,
        into reading: inout FleetReading
    ) throws(JournalError) {
        for row in members {
            guard let name = row.gatewayName(1) else {
                reading.unnamed += 1
                continue
            }
            reading.members.append(try FleetMember(row, named: name))
        }
        for row in drains {
            guard let name = row.gatewayName(0) else {
                reading.unnamed += 1
                continue
            }
            reading.drains.append(
                FleetDrain(
                    name: name,
                    at: try row.present(1),
                    by: row.line(2),
                    why: row.line(3)
                )
            )
        }
    }

    private static func changes(after version: Int64, most: Int) -> DatabaseStatement {
        DatabaseStatement(
            """
            SELECT version, at, actor, why, rule, changed_from, changed_to, gateway, ticket
            FROM rollout_changes WHERE version > $1 ORDER BY version DESC LIMIT $2
            """,
            [.number(version), .number(Int64(most))]
        )
    }

    /// The oldest first.
    private static func changes(_ rows: DatabaseRows) throws(JournalError) -> [FleetChange] {
        try rows.reversed().map { (row) throws(JournalError) in
            var change = FleetChange(
                version: try row.present(0),
                rule: row.text(4) == nil ? nil : row.line(4),
                from: row.line(5),
                to: row.line(6),
                note: FleetChange.Note(
                    at: try row.present(1),
                    by: row.line(2),
                    why: row.line(3),
                    gateway: row.line(7)
                )
            )
            change.ticket = row.bytes(8) ?? []
            return change
        }
    }

    /// The last changes, the oldest first.
    package func lastChanges(atMost count: Int) throws(JournalError) -> [FleetChange] {
        guard let rows = try link.ask([Self.changes(after: -1, most: count)]).first else {
            throw JournalError.damaged("a statement without an answer")
        }
        return try Self.changes(rows)
    }

    /// Compares and sets the orders.
    ///
    /// - change: its version is that of the orders; its ticket is new.
    /// - version: what the database has to be at.
    /// - Returns: whether it was, so that the orders are set. If it throws, that is unknown: a
    ///   change with this ticket says so.
    package func set(
        _ orders: String,
        _ change: FleetChange,
        replacing version: Int64
    ) throws(JournalError) -> Bool {
        let rows = try link.ask([
            DatabaseStatement(
                """
                WITH done AS (
                    UPDATE rollout_state SET version = $2, orders = $3
                    WHERE id = 1 AND version = $1 RETURNING version
                )
                INSERT INTO rollout_changes (version, at, actor, why, rule, changed_from,
                    changed_to, gateway, ticket)
                SELECT version, $4, $5, $6, $7, $8, $9, $10, $11 FROM done RETURNING version
                """,
                [
                    .number(version), .number(change.version), .text(orders),
                    .number(change.note.at), .text(change.note.by), .text(change.note.why),
                    .text(change.rule), .text(change.from), .text(change.to),
                    .text(change.note.gateway), .bytes(change.ticket),
                ]
            ),
            DatabaseStatement(
                "DELETE FROM rollout_changes WHERE version <= $1",
                [.number(change.version - Self.keptChanges)]
            ), DatabaseStatement("NOTIFY \(ChangeFollower.orders)"),
        ])
        return rows.first?.count == 1
    }

    /// A ticket for ``set(_:_:replacing:)``.
    package static func ticket() -> [UInt8] { RandomBytes.make(count: 16) }

    // MARK: Gateways

    /// A gateway says that it has ended.
    package func end(_ instance: Int64) throws(JournalError) {
        _ = try link.ask([
            DatabaseStatement(
                """
                UPDATE gateways SET standing = '\(FleetMember.ended)', seen_at = \(Self.now),
                    clients = 0 WHERE instance = $1
                """,
                [.number(instance)]
            )
        ])
    }

    /// Has the gateways of a name drain, until ``resume(_:)``.
    package func drain(_ drain: FleetDrain) throws(JournalError) {
        _ = try link.ask([
            DatabaseStatement(
                """
                INSERT INTO drains (name, at, actor, why) VALUES ($1, $2, $3, $4)
                ON CONFLICT (name) DO NOTHING
                """,
                [.text(drain.name), .number(drain.at), .text(drain.by), .text(drain.why)]
            ), DatabaseStatement("NOTIFY \(ChangeFollower.orders)"),
        ])
    }

    /// Ends a drain.
    ///
    /// - Returns: whether there was one.
    package func resume(_ name: String) throws(JournalError) -> Bool {
        let rows = try link.ask([
            DatabaseStatement("DELETE FROM drains WHERE name = $1 RETURNING name", [.text(name)]),
            DatabaseStatement("NOTIFY \(ChangeFollower.orders)"),
        ])
        return (rows.first?.count ?? 0) > 0
    }
}

/// What the database says of a fleet.
package struct FleetReading: Sendable {
    package let version: Int64
    /// The orders as JSON; `nil` where the reader knows this version.
    package var orders: String?
    /// The ticket of the change that made these orders; `nil` where that change is not kept.
    package var ticket: [UInt8]?
    /// The changes since the version that the reader knows, the oldest first.
    package var changes: [FleetChange] = []
    package var members: [FleetMember] = []
    package var drains: [FleetDrain] = []
    /// Rows of gateways and drains whose names no gateway can have. They are left out.
    package var unnamed = 0
    /// Counts of other gateways that were written lately.
    package var counts: [FleetCount] = []
    /// Questions of operators at other gateways.
    package var questions: [FleetQuestion] = []
    /// What all gateways have taken of limits, as far as it has changed lately.
    package var levels: [FleetLevel] = []
    /// Uses that were not written, since another gateway wrote the same rows.
    package var unwritten: [FleetUse] = []
    /// Second of Unix time, by the clock of the database.
    package var now: Int64 = 0
    /// The secret of the installs' hash, where it was asked for.
    package var secret: [UInt8]?
}

/// What a gateway gives to the others and asks of them, beside orders.
package struct FleetExchange: Sendable {
    /// Its own counts that the database does not have.
    package var counts: [FleetCount] = []
    /// What it has taken of limits that all gateways share.
    package var uses: [FleetUse] = []
    /// ``FleetReading/now`` of the last reading.
    package var readAt: Int64 = 0
    /// Whether the secret of the installs' hash is asked for.
    package var wantsSecret = false

    package init() {}
}

/// What one gateway has counted for the guard of a rule in a slot of time.
package struct FleetCount: Sendable {
    package let rule: String
    /// The number of the slot since 1970: twelve of them are a window.
    package let slot: Int64
    /// The length of the window, in seconds.
    package let span: Int64
    /// The version of the orders with which the counting began.
    package let since: Int64
    package let sketches: Sketches

    /// Registers of sketches; no bytes for an empty one.
    package struct Sketches: Sendable {
        package let passed: [UInt8]
        package let refused: [UInt8]
        package let broken: [UInt8]

        package init(passed: [UInt8], refused: [UInt8], broken: [UInt8]) {
            (self.passed, self.refused, self.broken) = (passed, refused, broken)
        }
    }

    package init(rule: String, slot: Int64, span: Int64, since: Int64, sketches: Sketches) {
        (self.rule, self.slot, self.span, self.since) = (rule, slot, span, since)
        self.sketches = sketches
    }
}

/// A change of the fleet's orders, as the audit has it.
package struct FleetChange: Sendable {
    /// Who ordered it, when, why, and where.
    package struct Note: Sendable {
        /// Second of Unix time, by the clock of the gateway that took it.
        package let at: Int64
        package let by: String
        package let why: String
        /// The name of the gateway that took it.
        package let gateway: String

        package init(at: Int64, by: String, why: String, gateway: String) {
            (self.at, self.by, self.why, self.gateway) = (at, by, why, gateway)
        }
    }

    /// The version of the orders that it has made.
    package let version: Int64
    /// `nil` for all rules.
    package let rule: String?
    package let from: String
    package let to: String
    package let note: Note
    /// Made by the writer, to find the change again.
    package fileprivate(set) var ticket = FleetDatabase.ticket()

    package init(version: Int64, rule: String?, from: String, to: String, note: Note) {
        (self.version, self.rule, self.from, self.to) = (version, rule, from, to)
        self.note = note
    }
}

/// A gateway of a fleet, as it describes itself.
package struct FleetMember: Sendable {
    /// The standing of a process that has ended by itself.
    package static let ended = "ended"

    /// Names the process.
    package let instance: Int64
    /// The gateway's name.
    package let name: String
    /// The program's version.
    package let program: String
    /// The address of its first listener.
    package var address = ""
    /// Second of Unix time, by its own clock.
    package let startedAt: Int64
    /// The version of the orders that it serves.
    package var orders: Int64 = 0
    /// Orders that it obeys and that the database does not have.
    package var pending: Int64 = 0
    /// SHA-256 of its rules.
    package var rulesDigest: [UInt8] = []
    /// `serving`, `drained`, `draining`, or ``ended``.
    package var standing = ""
    /// Clients' open connections while it is drained.
    package var clients: Int64 = 0
    /// Seconds since it wrote its row, by the clock of the database.
    package var age: Int64 = 0

    package init(instance: Int64, name: String, program: String, startedAt: Int64) {
        (self.instance, self.name) = (instance, name)
        (self.program, self.startedAt) = (program, startedAt)
    }

    fileprivate init(_ row: DatabaseRow, named name: String) throws(JournalError) {
        self.init(
            instance: try row.present(0),
            name: name,
            program: row.line(2),
            startedAt: try row.present(4)
        )
        address = row.line(3)
        orders = try row.present(5)
        pending = try row.present(6)
        rulesDigest = row.bytes(7) ?? []
        standing = row.line(8)
        age = max(try row.present(9), 0)
        clients = try row.present(10)
    }
}

/// An operator's order that the gateways of a name drain.
package struct FleetDrain: Sendable {
    package let name: String
    /// Second of Unix time.
    package let at: Int64
    package let by: String
    package let why: String

    package init(name: String, at: Int64, by: String, why: String) {
        (self.name, self.at, self.by, self.why) = (name, at, by, why)
    }
}
