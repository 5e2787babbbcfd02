package import ConfigurationReading
import Glibc
import KeyStore
import PostgreSQLKeyStore
package import Rules
import Services
import Signatures

/// What commands do at the database of a fleet, whether or not a gateway answers.
package struct FleetCommands: Sendable {
    /// Why it was not done, for people, with the next step.
    package struct Fault: Error, Sendable {
        package let text: String

        package init(text: String) { self.text = text }
    }

    /// The name of commands in the audit, where gateways have theirs.
    private static let name = "command"

    private let database: FleetDatabase
    private let rules: RuleSet

    /// `nil` where no database is shared.
    package init?(_ configuration: GatewayConfiguration) {
        guard let fleet = Fleet.access(configuration) else { return nil }
        (database, rules) = (fleet.database, configuration.fileRules)
    }

    private var now: Int64 { Int64(time(nil)) }

    private var caller: String { "uid \(getuid())" }

    private func attempt<Value>(
        _ body: () throws(JournalError) -> Value
    ) throws(Fault) -> Value {
        do throws(JournalError) {
            return try body()
        } catch {
            let next = error.next.map { "; next: \($0)" } ?? ""
            throw Fault(text: "the fleet's database: \(error.detail)\(next)")
        }
    }

    // MARK: Orders

    /// Gives an order.
    ///
    /// - Returns: what has changed, and the version of the orders.
    package func order(
        _ call: RolloutRequest.Call
    ) throws(Fault) -> (change: RolloutOrders.Change, version: Int64) {
        let at = UnixTime(seconds: now)
        guard let note = RolloutNote(at: at, by: caller, why: call.why) else {
            throw Fault(text: "--why is too long, or no single line")
        }
        var ordering = FleetOrdering(database, gateway: Self.name, FleetOrders(), now: at)
        let outcome = try attempt { () throws(JournalError) in
            try ordering.read()
            let known = call.after ?? ordering.orders.version
            return try ordering.give(call.request, note, rules, after: known)
        }
        switch outcome {
        case .given(let change): return (change, ordering.orders.version)
        case .impossible(.unknownRule): throw Fault(text: "no rule has this id")
        case .impossible(.verifiesNothing):
            throw Fault(text: "the rule's file says off or deny, and not what requests must carry")
        case .impossible(.full): throw Fault(text: "too many rules have an order")
        case .stale, .needless, .busy:
            throw Fault(
                text: "nothing has changed: there is a newer order; look with `portcullis rollout`"
            )
        }
    }

    /// The rules under the fleet's orders, one line each, and the version of the orders.
    package func standing() throws(Fault) -> (lines: String, version: Int64) {
        let at = UnixTime(seconds: now)
        var ordering = FleetOrdering(database, gateway: Self.name, FleetOrders(), now: at)
        try attempt { () throws(JournalError) in try ordering.read() }
        let orders = ordering.orders.orders(rules)
        let facts = rules.rules.map { RuleFacts(orders.standing(of: $0), filed: $0, origin: "") }
        return (facts.lines, ordering.orders.version)
    }

    // MARK: Gateways

    /// The gateways, and what to know about them.
    package func status() throws(Fault) -> (lines: String, warnings: [String]) {
        let reading = try reading()
        var facts = FleetFacts(gateway: "", order: reading.version, pending: 0, silence: nil)
        facts.gateways = reading.members.map { FleetFacts.Gateway($0, isOwn: false) }
        var warnings = facts.rulesDiffer ? ["gateways that serve have different rules"] : []
        for gateway in facts.gateways where gateway.isHeard && gateway.order != reading.version {
            warnings.append(
                "\(gateway.name) serves order \(gateway.order), and the fleet's is "
                    + "\(reading.version)"
            )
        }
        warnings += reading.drains.map { "\($0.name) is drained (\($0.text))" }
        let lines = facts.gateways.map(\.line).joined()
        return (lines + "order \(reading.version)\n", warnings)
    }

    private func reading() throws(Fault) -> FleetReading {
        try attempt { () throws(JournalError) in try database.reading(after: .max) }
    }

    /// Drains the gateways of a name, and waits until their connections have ended.
    ///
    /// - patience: the longest wait, in seconds.
    /// - Returns: the number of connections that are left.
    package func drain(_ name: String, why: String, patience: Int) throws(Fault) -> Int64 {
        guard RolloutNote.isPlain(why, max: RolloutNote.whyMax) else {
            throw Fault(text: "--why is too long, or no single line")
        }
        guard try reading().members.contains(where: { $0.name == name }) else {
            throw Fault(
                text: "no gateway is named \(name); `portcullis fleet status` lists all of them"
            )
        }
        try attempt { () throws(JournalError) in
            try database.drain(FleetDrain(name: name, at: now, by: caller, why: why))
        }
        return try wait(patience) { (member: FleetMember) in
            guard member.name == name, FleetFacts.Gateway(member, isOwn: false).isHeard else {
                return 0
            }
            // The first count comes with the second row after the drain.
            return member.standing == "serving" ? 1 : member.clients
        }
    }

    /// Ends a drain, and waits until the gateway is ready.
    ///
    /// - Returns: whether it is.
    package func resume(_ name: String, patience: Int) throws(Fault) -> Bool {
        let wasDrained = try attempt { () throws(JournalError) in try database.resume(name) }
        guard wasDrained else {
            throw Fault(text: "\(name) is not drained; `portcullis fleet status` says what is")
        }
        return try wait(patience) { $0.name == name && $0.standing == "drained" ? 1 : 0 } == 0
    }

    /// Waits until a number of all gateways together is 0.
    private func wait(
        _ patience: Int,
        _ number: (FleetMember) -> Int64
    ) throws(Fault) -> Int64 {
        let deadline = ContinuousClock.now + .seconds(patience)
        // Twice in a row: a row may be a second old.
        var zeros = 0
        while true {
            let sum = try reading().members.reduce(0) { $0 + number($1) }
            zeros = sum == 0 ? zeros + 1 : 0
            guard zeros < 3, ContinuousClock.now < deadline else { return sum }
            // Gateways write their rows each second.
            poll(nil, 0, 700)
        }
    }
}
