package import ConfigurationReading
import Glibc
import KeyStore
import PostgreSQLKeyStore
package import Rules
package import Services
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

    /// The gateways, and the names that operators have drained.
    package func gateways() throws(Fault) -> [FleetFacts.Gateway] {
        try attempt { () throws(JournalError) in
            try database.reading(after: .max).members.map { FleetFacts.Gateway($0, isOwn: false) }
        }
    }
}
