import ConfigurationReading
import Dispatch
import Encodings
import EventLoops
import Glibc
import Logging
import Proxy
import Rules
import Services
import Verification

/// Reloads, and the settings that the event loops get after one.
///
/// A reload reads files and looks up names, which may take seconds. It runs on its own queue, so
/// that the control queue still serves operators and signals.
final class Reloads: Sendable {
    /// The parts that a reload changes beside the event loops.
    struct Parts: Sendable {
        let certificates: Certificates
        let directory: OriginDirectory
        let rollouts: Rollouts
        let guards: Guards
        /// `nil` where no database is shared.
        let fleet: Fleet?
        let reporting: Reporting
        let apple: AppleOperations
        let google: GoogleOperations
        let parties: RequestParties

        /// Reports and refusals for operators: in a fleet, of all gateways.
        var reports: any ReportSource & RefusalSource { fleet?.reports ?? reporting }
    }

    /// Whether a reload runs.
    private enum Stage {
        /// Leaves to `running`.
        case none
        /// Files are being read. Leaves to `none`, `runningBeforeNext`.
        case running
        /// Another reload was requested meanwhile: the files may have changed since they were read.
        /// Leaves to `running`.
        case runningBeforeNext
    }

    private struct State {
        var stage = Stage.none
        /// The admission of enrolments. A reload keeps the state of limits that it does not
        /// change.
        var admission: EnrolmentAdmission
        var generation = 1
        /// When the configuration was last read, successfully or not.
        var triedAt: Int64
        var refused: String?
        var refusedCount: UInt64 = 0
        var accessLog: LogWriter?
        /// Called on the control queue when a reload begins and when it has ended.
        var changed: @Sendable (_ isRunning: Bool) -> Void = { _ in }
    }

    private let plane: ControlPlane
    private let judging: JudgingParts
    private let parts: Parts
    private let outputs: LogOutputs
    private let operatorTokens: [OperatorTokenBox]
    private let queue = DispatchQueue(label: "portcullis.loading")
    private let state: QueueBound<State>

    init(
        _ plane: ControlPlane,
        _ judging: JudgingParts,
        _ parts: Parts,
        _ admission: EnrolmentAdmission,
        _ outputs: LogOutputs,
        _ accessLog: LogWriter?,
        _ operatorTokens: [OperatorTokenBox]
    ) {
        self.plane = plane
        self.judging = judging
        self.parts = parts
        self.outputs = outputs
        self.operatorTokens = operatorTokens
        state = QueueBound(
            State(admission: admission, triedAt: plane.startedAt, accessLog: accessLog),
            on: plane.queue
        )
    }

    /// `changed` is called on the control queue when a reload begins and when it has ended.
    func start(changed: @escaping @Sendable (_ isRunning: Bool) -> Void) {
        state.value.changed = changed
    }

    var isRunning: Bool { if case .none = state.value.stage { false } else { true } }

    /// The first configuration is 1; each accepted reload adds 1.
    var generation: Int { state.value.generation }

    var accessLog: LogWriter? { state.value.accessLog }

    /// The state of the configuration, for operators.
    var facts: ConfigurationFacts {
        var facts = ConfigurationFacts(
            generation: UInt64(state.value.generation),
            lastReloadAtSeconds: state.value.triedAt,
            lastReloadError: state.value.refused,
            refusedReloads: state.value.refusedCount
        )
        facts.rulesDigest = Hex.text(plane.configuration.rulesDigest)
        return facts
    }

    /// Reads the configuration again; keeps the running one if there is an error. Reloads that are
    /// requested while one runs are merged into one, after it.
    func reload() {
        guard !plane.isEnding else { return }
        guard case .none = state.value.stage else {
            state.value.stage = .runningBeforeNext
            return
        }
        state.value.stage = .running
        state.value.changed(true)
        let (file, current) = (plane.file, plane.configuration)
        let (directory, outputs) = (parts.directory, outputs)
        let parties = parts.parties
        let (known, tls) = (directory.servers, parts.certificates.surroundings)
        let orders = parts.rollouts.orders
        queue.async { [self] in
            let read = ConfigurationLoader.load(file)
            let loaded = Result { () throws(GatewayError) in
                guard let next = read.configuration else {
                    throw GatewayError(
                        "the configuration is invalid",
                        hint: "`portcullis check \(file)` says more."
                    )
                }
                return try PreparedReload(
                    next.ordered(by: orders),
                    replacing: current,
                    file,
                    known,
                    tls,
                    directory.resolver,
                    parties,
                    directory.registry,
                    outputs
                )
            }
            let problems = read.problems.map(\.text)
            plane.perform { self.ended(problems, loaded, orders) }
        }
    }

    private func ended(
        _ problems: [String],
        _ loaded: Result<PreparedReload, GatewayError>,
        _ orders: RolloutOrders
    ) {
        let isNextWanted = if case .runningBeforeNext = state.value.stage { true } else { false }
        state.value.stage = .none
        // A stop that came meanwhile takes precedence.
        guard !plane.isEnding else { return }
        for problem in problems { plane.log.warning("\(problem)") }
        state.value.triedAt = Int64(time(nil))
        switch loaded {
        case .success(let next):
            apply(next)
            // Operators have changed a rollout while files were read.
            if orders != parts.rollouts.orders { serveOrderedRules() }
            parts.rollouts.warn()
            parts.guards.start()
        case .failure(let error): refuse(error)
        }
        state.value.changed(false)
        if isNextWanted { reload() }
    }

    private func apply(_ next: PreparedReload) {
        let (read, judging) = (next.configuration, judging)
        if read.enrolment != state.value.admission.settings {
            let admission = EnrolmentAdmission(read.enrolment, after: state.value.admission)
            state.value.admission = admission
            parts.fleet?.replace(admission)
        }
        let services = judging.services(read, state.value.admission)
        // Before a request can ask one of the new services.
        parts.parties.proofs.serves(read)
        for loop in plane.loops {
            loop.reload(
                next.settings,
                services,
                certificates: next.certificates.listeners,
                accessLog: next.accessLog
            ) { judging.judge(read) }
        }
        ControlPlane.warn(next.warnings, plane.log)
        for (box, listener) in zip(operatorTokens, read.admin) { box.replace(by: listener.token) }
        plane.configuration = read
        parts.apple.loaded(read)
        parts.google.loaded(read)
        parts.parties.proofs.loaded(read)
        parts.directory.loaded(next.servers, next.settings.origins)
        parts.certificates.loaded(next.certificates, next.stamps)
        state.value.accessLog = next.accessLog
        plane.log.logLevel = Logger.Level(read.log.level)
        state.value.generation += 1
        state.value.refused = nil
        let generation = "generation \(state.value.generation)"
        plane.log.notice("reloaded \(plane.file): \(generation)")
        parts.reporting.add(Report.Mark(.reload, at: plane.wallSeconds, generation))
    }

    private func refuse(_ error: GatewayError) {
        state.value.refused = error.what
        state.value.refusedCount += 1
        plane.log.error(
            """
            reload refused, generation \(state.value.generation) stays in use: \(error.what); \
            \(error.hint)
            """
        )
        // A renamed file is released in any case.
        if case .file = plane.configuration.log.access { reopenLog() }
    }

    /// Opens the access log's file again, so that a renamed one is released.
    func reopenLog() {
        guard case .file(let file) = plane.configuration.log.access else {
            return plane.log.notice("the access log is no file: there is nothing to open again")
        }
        state.value.accessLog?.reopen(file) { [self] error in
            plane.perform { [self] in
                if let error {
                    plane.log.error(
                        "\(error.what); lines still go to the previous file; \(error.hint)"
                    )
                } else {
                    plane.log.notice("the access log \(file) was opened again")
                }
            }
        }
    }

    /// Gives the current orders to every event loop. `told` is called on the control queue for each
    /// event loop that has them.
    func serveOrderedRules(_ told: @escaping @Sendable () -> Void = {}) {
        plane.configuration = plane.configuration.ordered(by: parts.rollouts.orders)
        let (read, judging, settings) = (plane.configuration, judging, parts.directory.settings)
        let services = judging.services(read, state.value.admission)
        for loop in plane.loops {
            loop.replaceRules(settings, services) {
                judging.judge(read)
            } taken: { [plane] in
                plane.perform(told)
            }
        }
    }
}
