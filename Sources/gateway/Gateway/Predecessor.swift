import ConfigurationReading
import Dispatch
import Encodings
import EventLoops
import Glibc
import KeyStore
import Logging
import Proxy
import Rules
import Signatures
import Synchronization
import Tokens

/// The process from which this one takes over, as the new one sees it. See `Upgrade` for the order.
package final class Predecessor: Sendable {
    /// The state that the old process hands over while it is quiesced.
    struct State: Sendable {
        let handed: HandoverState
        /// `nil` where there is no store.
        let lease: StoreLease?
    }

    /// Answers a query at once; `nil` for a query about another subject.
    typealias Answerer = @Sendable (_ question: [UInt8]) -> [UInt8]?

    /// The longest wait for the plan: the old process sends it at once.
    private static let planMilliseconds = 10_000
    /// The longest wait for all other messages. The old process gives up earlier.
    private static let patienceMilliseconds = 120_000
    /// The most bytes of all pieces of a state together.
    private static let stateMax = 1 << 30

    private let socket: HandoverSocket
    private let store: String
    package let sockets: InheritedSockets
    private let taken = Mutex<State?>(nil)
    /// Reports each second that this process lives, until it has everything.
    private let pulse: Pulse

    /// The state that was taken; `nil` before.
    var state: State? { taken.withLock { $0 } }

    static let garbled = GatewayError(
        "the process before has handed over what this version can't read",
        hint: "Restart the service instead; sessions and challenges of clients end with that."
    )

    private static let gone = GatewayError(
        "the process before has ended, or has given the upgrade up",
        hint: "Its log says why."
    )

    /// Reads the environment; `nil` for a first start. Called before any descriptor is opened.
    ///
    /// - Throws: when the old process sends nothing readable.
    package init?(_ environment: [String: String]) throws(GatewayError) {
        guard let text = environment[SuccessorProcess.variable], let number = Int32(text) else {
            return nil
        }
        let socket = HandoverSocket(number)
        self.socket = socket
        guard
            case .message(.plan(let store, let sockets), _) = socket.receive(
                within: Self.planMilliseconds
            )
        else { throw Self.garbled }
        let count = sockets.reduce(0) { $0 + $1.count }
        var descriptors: [Int32] = []
        while descriptors.count < count {
            guard
                case .message(.sockets, let more) = socket.receive(within: Self.planMilliseconds),
                !more.isEmpty
            else { throw Self.garbled }
            descriptors += more
        }
        guard descriptors.count == count else { throw Self.garbled }
        self.store = store
        self.sockets = InheritedSockets(sockets, descriptors)
        pulse = Pulse(every: .seconds(1)) { _ = socket.send(.alive) }
    }

    /// Reports why this process can't take over. It must end then.
    package func refuse(_ error: GatewayError) { _ = socket.send(.failed("\(error)")) }

    /// - Throws: when the configuration names another store.
    func check(_ configuration: GatewayConfiguration) throws(GatewayError) {
        guard configuration.store.name == store else {
            throw GatewayError(
                "the store is \(configuration.store.name), and was \(store)",
                hint: "An upgrade can't change `store`: restart the service for it."
            )
        }
    }

    /// Reports that all is well so far, and takes the state. From then on the old process is
    /// quiesced until ``takeTurn(_:_:also:)``.
    ///
    /// - isLent: whether the store has only one user at a time, so that the old process lends it.
    func takeState(isLent: Bool) throws(GatewayError) -> State {
        guard socket.send(.ready) else { throw Self.gone }
        var bytes: [UInt8] = []
        var descriptors: [Int32] = []
        while true {
            switch socket.receive(within: Self.patienceMilliseconds) {
            case .message(.state(let piece, let isLast), let given):
                bytes += piece
                descriptors += given
                guard bytes.count <= Self.stateMax else { throw Self.garbled }
                guard isLast else { continue }
                guard descriptors.count == (isLent ? 2 : 0) else { throw Self.garbled }
                let lease = isLent ? StoreLease(lock: descriptors[0], calls: descriptors[1]) : nil
                guard let handed = try? HandoverState(bytes) else { throw Self.garbled }
                let state = State(handed: handed, lease: lease)
                taken.withLock { $0 = state }
                return state
            case .ended, .late: throw Self.gone
            case .message, .malformed: throw Self.garbled
            }
        }
    }

    /// Takes over the decisions. Then this process decides, and answers the old one's queries.
    ///
    /// If the old process is gone, it decides nothing either: it closes its end of the socket only
    /// after this process has ended, or with its own end.
    func takeTurn(
        _ keys: KeyTable,
        _ issuer: ChallengeIssuer,
        also answerers: [Answerer]
    ) throws(GatewayError) {
        // After TAKEN only answers follow.
        pulse.end()
        guard socket.send(.taken) else { return }
        switch socket.receive(within: Self.patienceMilliseconds) {
        case .message(.go, _): break
        case .ended: return
        case .late: throw Self.gone
        case .message, .malformed: throw Self.garbled
        }
        let service = SuccessorService(keys, issuer)
        let replies = DispatchQueue(label: "portcullis.predecessor.replies")
        DispatchQueue(label: "portcullis.predecessor").async { [socket] in
            while case .message(let message, _) = socket.receive(within: nil) {
                guard case .question(let number, let question) = message else { continue }
                if let answer = Self.answer(question, answerers) {
                    replies.async { _ = socket.send(.answer(number, answer)) }
                    continue
                }
                service.answer(question) { answer in
                    // Not on the caller's thread, which may be the store's writer.
                    replies.async { _ = socket.send(.answer(number, answer)) }
                }
            }
        }
    }

    /// Asks each in turn, once: an answer means that its effect is done.
    private static func answer(_ question: [UInt8], _ answerers: [Answerer]) -> [UInt8]? {
        for answerer in answerers {
            if let answer = answerer(question) { return answer }
        }
        return nil
    }
}

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
    /// The orders of operators about rollouts, in the form of their file; in a fleet with their
    /// version, and with those that the database does not have.
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
    func handoverState(_ orders: FleetOrders) -> HandoverState {
        HandoverState(
            challenges: judging.issuer.state,
            sessions: judging.sessions.state,
            tokens: parts.apple.devices.state,
            tickets: tickets.state,
            orders: parts.rollouts.fleet == nil ? orders.agreed.json : orders.json,
            drained: parts.directory.registry.drained
        )
    }

    /// The orders of the predecessor, whose drained servers are drained here, too; `nil` without a
    /// predecessor. It may have an order that its file does not have.
    static func orders(
        of predecessor: Predecessor?,
        _ registry: OriginRegistry,
        isInFleet: Bool
    ) throws(GatewayError) -> FleetOrders? {
        guard let handed = predecessor?.state?.handed else { return nil }
        for server in handed.drained { registry.drain(server) }
        do throws(JSONError) {
            guard isInFleet else {
                return FleetOrders(agreed: try RolloutOrders(json: handed.orders.span))
            }
            return try FleetOrders(json: handed.orders.span)
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
        let file: RolloutFile
        let fleet: FleetAccess?
        /// Why the orders are not on disk; `nil` where they are.
        let unsaved: String?

        init(
            _ configuration: GatewayConfiguration,
            _ preparation: Preparation,
            _ surroundings: GatewayServer.Surroundings,
            _ registry: OriginRegistry,
            _ log: Logger
        ) throws(GatewayError) {
            file = RolloutFile(configuration)
            fleet = Fleet.access(configuration)
            let handed = try GatewayServer.orders(
                of: surroundings.predecessor,
                registry,
                isInFleet: fleet != nil
            )
            let orders = handed ?? preparation.keptOrders
            let rules = configuration.fileRules
            var unsaved: String?
            self.orders = Self.newest(
                orders,
                rules: rules,
                file: file,
                fleet: fleet,
                log: log,
                unsaved: &unsaved
            )
            inForce = self.orders.orders(rules)
            // The predecessor writes no more. Its disk may have been full.
            if handed != nil, RolloutFile.kept(of: configuration).orders != self.orders {
                unsaved = unsaved ?? "the process before could not write them"
            }
            self.unsaved = unsaved
        }

        /// The newest orders that can be read.
        private static func newest(
            _ orders: FleetOrders,
            rules: RuleSet,
            file: RolloutFile,
            fleet: FleetAccess?,
            log: Logger,
            unsaved: inout String?
        ) -> FleetOrders {
            guard let fleet else { return orders }
            var ordering: FleetOrdering
            do throws(JournalError) {
                ordering = try read(orders, fleet)
                if ordering.orders == orders, let other = try replacement(of: orders, fleet) {
                    ordering = other
                    log.warning(
                        """
                        the fleet's database has lost order \(orders.version), which this gateway \
                        has kept, and has another one of this number; this gateway takes that one; \
                        next: see `portcullis rollout`
                        """
                    )
                }
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
                try file.save(ordering.orders, inForce: inForce, ordering.changes)
            } catch {
                unsaved = error.text
                log.error("the fleet's orders can't be kept for another start: \(error.text)")
            }
            return ordering.orders
        }

        private static func read(
            _ orders: FleetOrders,
            _ fleet: FleetAccess
        ) throws(JournalError) -> FleetOrdering {
            let now = UnixTime(seconds: Int64(time(nil)))
            var ordering = FleetOrdering(fleet.database, gateway: fleet.name, orders, now: now)
            try ordering.read()
            return ordering
        }

        /// The orders of the database under the version of these, where they are others: a failover
        /// that this process did not see has lost these. `nil` where they are the same.
        private static func replacement(
            of orders: FleetOrders,
            _ fleet: FleetAccess
        ) throws(JournalError) -> FleetOrdering? {
            guard orders.version > 0 else { return nil }
            var doubted = orders
            doubted.doubt()
            let found = try read(doubted, fleet)
            let isOther = found.orders.agreed != orders.agreed
            return isOther && found.orders.version == orders.version ? found : nil
        }
    }
}
