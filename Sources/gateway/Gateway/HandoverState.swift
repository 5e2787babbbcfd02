import ConfigurationReading
import Encodings
import EventLoops
import Glibc
import KeyStore
import Logging
import Proxy
import Rules
import Signatures
import Tokens

/// The state that one process of a gateway hands over to its successor, each part in its owner's
/// form.
struct HandoverState: Equatable, Sendable {
    /// The issuer's state: spent challenges, and the keys that recognise challenges.
    var challenges: [UInt8]
    /// The state of the table of sessions.
    var sessions: [UInt8]
    /// The state of the client that asks Apple about devices: the used tokens.
    var tokens: [UInt8]
    /// The keys of clients' TLS tickets.
    var tickets: [UInt8]
    /// The orders of operators about rollouts, in the form of their file.
    var orders: [UInt8]
    /// The servers that operators have drained.
    var drained: [String]

    /// The most servers that can be drained; a configuration has fewer.
    private static let drainedMax = 1 << 16

    var bytes: [UInt8] {
        var out = ByteWriter()
        out.block(challenges)
        out.block(sessions)
        out.block(tokens)
        out.block(tickets)
        out.block(orders)
        out.word(UInt64(drained.count))
        for server in drained { out.text(server) }
        return out.bytes
    }
}

extension HandoverState {
    init(_ bytes: [UInt8]) throws(ByteReader.Fault) {
        var bytes = ByteReader(bytes)
        challenges = try bytes.block()
        sessions = try bytes.block()
        tokens = try bytes.block()
        tickets = try bytes.block()
        orders = try bytes.block()
        let count = try bytes.word()
        guard count <= UInt64(Self.drainedMax) else { throw ByteReader.Fault() }
        drained = []
        for _ in 0..<count { drained.append(try bytes.text()) }
        try bytes.end()
    }
}

extension GatewayServer {
    /// The state for the successor. The event loops are quiesced, and no orders are accepted.
    func handoverState(_ orders: RolloutOrders) -> HandoverState {
        HandoverState(
            challenges: judging.issuer.state,
            sessions: judging.sessions.state,
            tokens: parts.apple.devices.state,
            tickets: tickets.state,
            orders: orders.json,
            drained: parts.directory.registry.drained
        )
    }

    /// The orders of the predecessor, whose drained servers are drained here, too; `nil` without a
    /// predecessor. It may have an order that its file does not have.
    static func orders(
        of predecessor: Predecessor?,
        _ registry: OriginRegistry
    ) throws(GatewayError) -> RolloutOrders? {
        guard let handed = predecessor?.state?.handed else { return nil }
        for server in handed.drained { registry.drain(server) }
        do throws(JSONError) {
            return try RolloutOrders(json: handed.orders.span)
        } catch {
            throw Predecessor.garbled
        }
    }

    /// Takes over the state that needs no store, where there is a predecessor.
    func takeRest(of predecessor: Predecessor?) throws(GatewayError) {
        guard let handed = predecessor?.state?.handed else { return }
        guard parts.apple.devices.take(handed.tokens),
            tickets.take(handed.tickets, now: ControlPlane.monotonicSeconds)
        else { throw Predecessor.garbled }
    }

    /// The open sessions: those of the predecessor, where there is one.
    static func sessions(
        _ limits: SessionTable.Limits,
        _ predecessor: Predecessor?
    ) throws(GatewayError) -> SessionTable {
        guard let state = predecessor?.state?.handed.sessions else { return SessionTable(limits) }
        do throws(ByteReader.Fault) {
            return try SessionTable(limits, goingOnFrom: state)
        } catch {
            throw Predecessor.garbled
        }
    }
}

extension Rollouts {
    /// The orders that a gateway begins with: those of its predecessor, or those that it has kept,
    /// and in a fleet newer ones where its database answers.
    struct Start {
        let orders: FleetOrders
        let inForce: RolloutOrders
        let file: RolloutFile?
        let fleet: FleetAccess?

        init(
            _ configuration: GatewayConfiguration,
            _ preparation: Preparation,
            _ surroundings: GatewayServer.Surroundings,
            _ registry: OriginRegistry,
            _ log: Logger
        ) throws(GatewayError) {
            file = RolloutFile(configuration)
            fleet = Fleet.access(configuration)
            var orders = preparation.keptOrders
            if let handed = try GatewayServer.orders(of: surroundings.predecessor, registry) {
                // The predecessor has saved them since this process has read the file.
                if fleet != nil { orders = RolloutFile.kept(of: configuration).orders }
                if orders.orders(configuration.fileRules) != handed {
                    orders = FleetOrders(version: orders.version, agreed: handed)
                }
            }
            self.orders = Self.newest(orders, configuration.fileRules, file, fleet, log)
            inForce = self.orders.orders(configuration.fileRules)
        }

        /// The newest orders that can be read.
        private static func newest(
            _ orders: FleetOrders,
            _ rules: RuleSet,
            _ file: RolloutFile?,
            _ fleet: FleetAccess?,
            _ log: Logger
        ) -> FleetOrders {
            guard let fleet else { return orders }
            let now = UnixTime(seconds: Int64(time(nil)))
            var ordering = FleetOrdering(fleet.database, gateway: fleet.name, orders, now: now)
            do throws(JournalError) {
                try ordering.read()
            } catch {
                log.warning(
                    """
                    the fleet's orders can't be read; those that this gateway has kept hold, \
                    version \(orders.version): \(error)
                    """
                )
                return orders
            }
            guard ordering.orders != orders else { return orders }
            do throws(RolloutFile.Fault) {
                let inForce = ordering.orders.orders(rules)
                try file?.save(ordering.orders, inForce: inForce, ordering.changes, holds: true)
            } catch {
                log.error("the fleet's orders can't be kept for another start: \(error.text)")
            }
            return ordering.orders
        }
    }
}
