package import ConfigurationReading
import Encodings
import Foundation
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
    /// The longest run of the command that starts a gateway again: ten minutes.
    private static let commandTimeout = Duration.seconds(600)
    /// The age of a row, in seconds, above which its process is silent: each writes its row every
    /// second.
    private static let silence: Int64 = 3

    private let database: FleetDatabase
    private let rules: RuleSet

    /// `nil` where no database is shared.
    package init?(_ configuration: GatewayConfiguration) {
        guard let fleet = FleetAccess(configuration) else { return nil }
        (database, rules) = (fleet.database, configuration.fileRules)
    }

    private var now: Int64 { Int64(time(nil)) }

    private var caller: String { "uid \(getuid())" }

    private func attempt<Value>(_ body: () throws(JournalError) -> Value) throws(Fault) -> Value {
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
            return try ordering.give(call.request, note, rules: rules, after: known)
        }
        switch outcome {
        case .given(let change): return (change, ordering.orders.version)
        case .impossible(.unknownRule), .impossible(.noSuchOrder):
            throw Fault(text: "no rule has this id")
        case .impossible(.verifiesNothing):
            throw Fault(text: "the rule's file says off or deny, and not what requests must carry")
        case .impossible(.full): throw Fault(text: "too many rules have an order")
        case .stale, .needless, .busy:
            throw Fault(
                text: "nothing has changed: there is a newer order; look with `portcullis rollout`"
            )
        }
    }

    /// The rules under the fleet's orders, one line each and as a document, and the version of the
    /// orders.
    package func standing() throws(Fault) -> (lines: String, json: String, version: Int64) {
        let newest = try newest(after: FleetOrders())
        let orders = newest.orders(rules)
        let facts = rules.rules.map { RuleFacts(orders.standing(of: $0), filed: $0, origin: "") }
        var out = JSONWriter(.indented)
        out.object { out in
            out.objects("rules", of: facts) { $1.write(into: &$0) }
            out.member("fleet_order", newest.version)
        }
        return (facts.lines, out.text + "\n", newest.version)
    }

    /// The orders that a gateway obeys which has kept these and hears of newer ones.
    func newest(after kept: FleetOrders) throws(Fault) -> FleetOrders {
        let at = UnixTime(seconds: now)
        var ordering = FleetOrdering(database, gateway: Self.name, kept, now: at)
        try attempt { () throws(JournalError) in try ordering.read() }
        return ordering.orders
    }

    // MARK: Gateways

    /// What the database knows of the gateways.
    package struct Status {
        /// A line for each gateway, and one for the fleet's orders.
        package let lines: String
        /// The same as a document, with the warnings.
        package let json: String
        /// What an operator should know about them.
        package let warnings: [String]
        /// Whether all of them have written their rows lately, or said that they end.
        package let isComplete: Bool
    }

    /// The gateways, and what to know about them.
    package func status() throws(Fault) -> Status {
        let reading = try reading()
        var facts = FleetFacts(gateway: "", order: reading.version, pending: 0, silence: nil)
        facts.gateways = reading.members.map { FleetFacts.Gateway($0, isOwn: false) }
        var warnings = facts.silent.map { gateway in
            "\(gateway.name) has not been heard of for \(gateway.age) s; next: see whether it runs "
                + "and reaches the database; one that is gone for good is forgotten after a day"
        }
        if facts.rulesDiffer { warnings.append("gateways that serve have different rules") }
        for gateway in facts.gateways where gateway.isHeard && gateway.order != reading.version {
            warnings.append(
                "\(gateway.name) serves order \(gateway.order), and the fleet's is "
                    + "\(reading.version)"
            )
        }
        warnings += reading.drains.map { "\($0.name) is drained (\($0.text))" }
        if reading.unnamed > 0 {
            warnings.append(
                "\(reading.unnamed) rows of the tables gateways and drains have names that no "
                    + "gateway can have, and are left out; next: find out who has written them, "
                    + "then delete them"
            )
        }
        let lines = facts.gateways.map(\.line).joined()
        let isComplete = facts.silent.isEmpty
        var out = JSONWriter(.indented)
        out.object { out in
            out.member("ok", isComplete)
            out.member("order", reading.version)
            out.member("rules_differ", facts.rulesDiffer)
            out.texts("warnings", warnings)
            out.objects("gateways", of: facts.gateways) { $1.write(into: &$0) }
        }
        return Status(
            lines: lines + "order \(reading.version)\n",
            json: out.text + "\n",
            warnings: warnings,
            isComplete: isComplete
        )
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
        return try wait(patience) { (members: [FleetMember]) in
            // The first count comes with the second row after the drain.
            Self.heard(name, members).reduce(0) {
                $0 + ($1.standing == "serving" ? 1 : $1.clients)
            }
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
        return try wait(patience) { (members: [FleetMember]) in
            Self.isDrained(name, members) ? 1 : 0
        } == 0
    }

    /// Whether a process of a name is drained, as far as its row says. The row of a process that
    /// has died says nothing: it is silent beside a later process of the name.
    static func isDrained(_ name: String, _ members: [FleetMember]) -> Bool {
        let named = members.filter { $0.name == name }
        return named.contains { member in
            let isGone =
                member.age > silence
                && named.contains { $0.age <= silence && $0.startedAt >= member.startedAt }
            return member.standing == "drained" && !isGone
        }
    }

    /// The names of the gateways to upgrade: those that were heard of lately and are not drained.
    package func upgradable() throws(Fault) -> [String] {
        let reading = try reading()
        let drained = Set(reading.drains.map(\.name))
        let heard = reading.members.filter { FleetFacts.Gateway($0, isOwn: false).isHeard }
        return Set(heard.map(\.name)).subtracting(drained).sorted()
    }

    /// Drains the gateways of a name, runs a command that starts them again, and waits until they
    /// serve.
    ///
    /// - command: for `sh`; the variable `PORTCULLIS_GATEWAY` has the name.
    /// - patience: the longest wait for connections to end, and then for new processes, in seconds.
    /// - Returns: the versions of the program before and after.
    package func upgrade(
        _ name: String,
        by command: String,
        why: String,
        patience: Int
    ) throws(Fault) -> (before: String, after: String) {
        let before = Self.heard(name, try reading().members)
        guard let program = before.first?.program else {
            throw Fault(
                text: "\(name) was not heard of lately; `portcullis fleet status` lists all of them"
            )
        }
        let left = try drain(name, why: why, patience: patience)
        guard left == 0 else {
            throw Fault(
                text: "\(name) still has \(left) connections and stays drained; next: wait for "
                    + "them with a longer --wait, or end it, then `portcullis fleet resume`"
            )
        }
        var environment = ProcessInfo.processInfo.environment
        environment["PORTCULLIS_GATEWAY"] = name
        let run = HookRun(["/bin/sh", "-c", command], environment, timeout: Self.commandTimeout)
        if let fault = run.run() {
            throw Fault(text: "\(name) stays drained: the command failed: \(fault)")
        }
        let known = Set(before.map(\.instance))
        // Its first row comes before it has read of the drain, and says that it serves. `resume`
        // would take that for the end of the drain.
        let missing = try wait(patience, looks: 1) { (members: [FleetMember]) in
            let new = Self.heard(name, members).filter { member in
                member.standing == "drained" && !known.contains(member.instance)
            }
            return max(Int64(known.count - new.count), 0)
        }
        guard missing == 0 else {
            throw Fault(
                text: "\(name) stays drained: no new process of it was heard of in \(patience) s; "
                    + "next: look into its log, then `portcullis fleet resume \(name)`"
            )
        }
        guard try resume(name, patience: patience) else {
            throw Fault(text: "\(name) has not said that it serves again")
        }
        return (program, Self.heard(name, try reading().members).first?.program ?? program)
    }

    /// The processes of a name that serve, the latest first.
    private static func heard(_ name: String, _ members: [FleetMember]) -> [FleetMember] {
        let named = members.filter { member in
            member.name == name && member.standing != "draining"
                && FleetFacts.Gateway(member, isOwn: false).isHeard
        }
        return named.sorted { $0.startedAt > $1.startedAt }
    }

    /// Waits until a number of all gateways together is 0.
    ///
    /// - looks: how often in a row it has to be: a row may be a second old.
    private func wait(
        _ patience: Int,
        looks: Int = 3,
        _ number: ([FleetMember]) -> Int64
    ) throws(Fault) -> Int64 {
        let deadline = ContinuousClock.now + .seconds(patience)
        var zeros = 0
        while true {
            let sum = number(try reading().members)
            zeros = sum == 0 ? zeros + 1 : 0
            guard zeros < looks, ContinuousClock.now < deadline else { return sum }
            // Gateways write their rows each second.
            poll(nil, 0, 700)
        }
    }
}
