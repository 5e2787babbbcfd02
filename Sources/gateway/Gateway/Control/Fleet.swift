import ConfigurationReading
import Cryptography
import Dispatch
import Encodings
import EventLoops
import KeyStore
import Logging
import PostgreSQLKeyStore
import Rules
import Services
import Signatures
import Telemetry
import Verification

/// The gateways that share a database, as this one knows them. Each second it writes its own row
/// and reads the others', and with the same transaction the orders of operators. A notification
/// makes it do so at once.
final class Fleet: Sendable {
    /// The interval of asking the database: each second.
    private static let pace = DispatchTimeInterval.seconds(1)

    private struct State {
        var own: FleetMember
        var members: [FleetMember] = []
        /// When the database last answered, by the monotonic clock.
        var heardAt: Int64?
        var isAsking = false
        /// Nothing is asked any more.
        var isClosed = false
        /// An order was announced while the database was asked.
        var isHinted = false
        /// Clients' open connections while the gateway is drained.
        var clients = 0
        /// Called with the reason when operators drain this gateway, and with `nil` when not.
        var drained: @Sendable (String?) -> Void = { _ in }
        /// A fault that does not end by itself was reported.
        var isReported = false
        /// The limits of enrolment, which all gateways share.
        var admission: EnrolmentAdmission
        /// Whether addresses and devices have the names here that all gateways know.
        var hasSecret = false
    }

    /// The parts of this gateway that share something with the other gateways.
    struct Parts {
        let rollouts: Rollouts
        let guards: Guards
        let reporting: Reporting
        let admission: EnrolmentAdmission
        let rates: KeyRates
    }

    private let plane: ControlPlane
    private let rollouts: Rollouts
    private let guards: Guards
    private let access: FleetAccess
    /// What devices have used of the rates of rules, which all gateways share.
    private let rates: KeyRates
    /// The report and the refusals of all gateways.
    let reports: FleetReports
    private let state: QueueBound<State>

    init(
        _ plane: ControlPlane,
        _ access: FleetAccess,
        parts: Parts
    ) {
        (self.plane, self.access) = (plane, access)
        (rollouts, guards, rates) = (parts.rollouts, parts.guards, parts.rates)
        let instance = Int64(bitPattern: RandomBytes.word() >> 1)
        reports = FleetReports(plane, parts.reporting, access: access, instance: instance)
        let own = FleetMember(
            instance: instance,
            name: access.name,
            program: ProgramVersion.text,
            startedAt: plane.startedAt
        )
        state = QueueBound(State(own: own, admission: parts.admission), on: plane.queue)
    }

    /// - address: of the first listener.
    /// - drained: called on the control queue, with who has drained this gateway and why, or `nil`.
    func start(
        _ keys: KeyTable,
        at address: String,
        drained: @escaping @Sendable (String?) -> Void
    ) {
        state.value.drained = drained
        state.value.own.address = address
        reports.start()
        keys.hearOrders { [plane, weak self] in plane.perform { [weak self] in self?.hear() } }
        turn()
    }

    /// The store closes: nothing is asked any more, and the others learn that this gateway has
    /// ended. Called on the control queue, which it blocks where the database answers.
    func close() {
        state.value.isClosed = true
        reports.close()
        let own = state.value.own.instance
        let silence = state.value.heardAt.map { ControlPlane.monotonicSeconds - $0 }
        if let silence, silence <= FleetFacts.silenceMax { warn(sayEnded(own)) }
        access.database.close()
    }

    /// Another process has taken over: the others learn that this one has ended. Does not block.
    func leave() {
        let own = state.value.own.instance
        DispatchQueue(label: "portcullis.fleet.leaving").async { [self] in
            let fault = sayEnded(own)
            plane.perform { [self] in warn(fault) }
        }
    }

    private func sayEnded(_ own: Int64) -> JournalError? {
        do throws(JournalError) {
            try access.database.end(own)
            return nil
        } catch {
            return error
        }
    }

    private func warn(_ fault: JournalError?) {
        guard let fault else { return }
        plane.log.warning("the others can't be told that this gateway has ended: \(fault)")
    }

    var connection: DatabaseStatistics.Connection { access.database.statistics }

    private func turn() {
        ask()
        plane.perform(after: Self.pace) { [weak self] in self?.turn() }
    }

    private func hear() {
        if state.value.isAsking { state.value.isHinted = true } else { ask() }
    }

    private func ask() {
        guard !state.value.isAsking, !state.value.isClosed, !rollouts.isClosed else { return }
        var own = state.value.own
        let orders = rollouts.fleetOrders
        own.orders = orders?.version ?? 0
        own.pending = Int64(orders?.pending ?? 0)
        own.rulesDigest = plane.configuration.rulesDigest
        let isDrained = plane.isDrained
        own.standing = plane.isEnding ? "draining" : isDrained ? "drained" : "serving"
        own.clients = Int64(state.value.clients)
        state.value.own = own
        var exchange = guards.exchange()
        let admission = state.value.admission
        let uses = state.value.hasSecret ? admission.takeUntold() + rates.takeUntold() : []
        exchange.uses = uses.map(FleetUse.init)
        state.value.isAsking = rollouts.refresh(own, exchange) { [self, exchange] result in
            guards.exchanged(exchange, result)
            answered(result)
            shared(uses, of: admission, result)
        }
    }

    // MARK: Limits

    /// A reload has replaced the limits of enrolment.
    func replace(_ admission: EnrolmentAdmission) { state.value.admission = admission }

    /// What the others have to know of the limits was written, or not.
    private func shared(
        _ uses: [FleetLimit.Use],
        of admission: EnrolmentAdmission,
        _ result: Result<FleetReading, JournalError>
    ) {
        func tellAgain(_ uses: [FleetLimit.Use]) {
            admission.tellAgain(uses)
            rates.tellAgain(uses)
        }
        guard case .success(let reading) = result else { return tellAgain(uses) }
        // The other half of the secret is the key of the installs' hash.
        if let secret = reading.secret, secret.count == 32 {
            let words = (secret.span.word(at: 16), secret.span.word(at: 24))
            state.value.admission.share(under: words)
            rates.share(under: words)
            state.value.hasSecret = true
        }
        let unwritten = Set(reading.unwritten)
        tellAgain(uses.filter { unwritten.contains(FleetUse($0)) })
        guard state.value.hasSecret else { return }
        let levels = reading.levels.compactMap { level in
            FleetLimit.Level(
                limit: level.limit,
                subject: UInt64(bitPattern: level.subject),
                fullIn: level.fullIn
            )
        }
        let own = state.value.own.instance
        let gateways = reading.members.count { member in
            FleetFacts.Gateway(member, isOwn: member.instance == own).isHeard
        }
        let now = MonotonicClock.nanoseconds
        state.value.admission.heard(levels, gateways: gateways, tick: now)
        rates.heard(levels, gateways: gateways, tick: now)
    }

    private func answered(_ result: Result<FleetReading, JournalError>) {
        state.value.isAsking = false
        guard !state.value.isClosed else { return }
        switch result {
        case .success(let reading):
            state.value.heardAt = ControlPlane.monotonicSeconds
            state.value.members = reading.members
            reports.answer(reading.questions)
            state.value.isReported = false
            let drain = reading.drains.first { $0.name == access.name }
            state.value.drained(drain?.text)
            countClients()
        case .failure(let error):
            // An outage is reported where keys are read.
            guard !error.isOutage, !state.value.isReported else { break }
            state.value.isReported = true
            plane.log.error(
                "the fleet's orders can't be read: \(error); next: \(error.next ?? "see its log")"
            )
        }
        guard state.value.isHinted else { return }
        state.value.isHinted = false
        ask()
    }

    private func countClients() {
        guard plane.isDrained else { return state.value.clients = 0 }
        plane.gather(LoopUnit.countClients) { [self] counts in
            state.value.clients = counts.reduce(0, +)
        }
    }

    var facts: FleetFacts {
        let now = ControlPlane.monotonicSeconds
        let orders = rollouts.fleetOrders
        let silence = state.value.heardAt.map { now - $0 }
        var facts = FleetFacts(
            gateway: access.name,
            order: orders?.version ?? 0,
            pending: orders?.pending ?? 0,
            silence: silence
        )
        facts.answers = reports.counts
        let own = state.value.own.instance
        facts.gateways = state.value.members.map { member in
            FleetFacts.Gateway(member, isOwn: member.instance == own, silence: silence ?? 0)
        }
        return facts
    }
}

extension FleetUse {
    init(_ use: FleetLimit.Use) {
        self.init(
            limit: use.limit.rawValue,
            subject: Int64(bitPattern: use.subject),
            micros: use.micros
        )
    }
}

extension FleetDrain {
    /// `2026-11-22T19:20:00Z, uid 0: a new kernel`
    var text: String { "\(UnixTime(seconds: at).iso8601), \(by)\(why.isEmpty ? "" : ": ")\(why)" }
}

extension FleetFacts.Gateway {
    /// - silence: seconds since the row was read.
    init(_ member: FleetMember, isOwn: Bool, silence: Int64 = 0) {
        self.init(
            name: member.name,
            standing: member.standing,
            age: member.age + silence,
            isOwn: isOwn
        )
        (program, address) = (member.program, member.address)
        (startedAt, order, pending) = (member.startedAt, member.orders, member.pending)
        (rules, clients) = (Hex.text(member.rulesDigest), member.clients)
    }
}
