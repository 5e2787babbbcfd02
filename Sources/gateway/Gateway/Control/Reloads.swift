import ConfigurationReading
import Dispatch
import Encodings
import EventLoops
import Glibc
import Logging
import Parties
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
        let calls: OutsideCalls
        let judging: JudgingParts
        let outputs: LogOutputs
        /// The tokens of the admin listeners, in their order.
        let operatorTokens: [OperatorTokenBox]

        /// Reports and refusals for operators: in a fleet, of all gateways.
        var reports: any ReportSource & RefusalSource { fleet?.reports ?? reporting }
    }

    private struct State {
        var progress: ReloadProgress
        /// The admission of enrolments. A reload keeps the state of limits that it does not
        /// change.
        var admission: EnrolmentAdmission
        var accessLog: LogWriter?
        /// Called on the control queue when a reload begins and when it has ended.
        var changed: @Sendable (_ isRunning: Bool) -> Void = { _ in }
    }

    private let plane: ControlPlane
    private let parts: Parts
    private let queue = DispatchQueue(label: "portcullis.loading")
    private let state: QueueBound<State>

    init(
        _ plane: ControlPlane,
        _ parts: Parts,
        admission: EnrolmentAdmission,
        accessLog: LogWriter?
    ) {
        (self.plane, self.parts) = (plane, parts)
        let progress = ReloadProgress(startedAt: plane.startedAt)
        state = QueueBound(
            State(progress: progress, admission: admission, accessLog: accessLog),
            on: plane.queue
        )
    }

    /// `changed` is called on the control queue when a reload begins and when it has ended.
    func start(changed: @escaping @Sendable (_ isRunning: Bool) -> Void) {
        state.value.changed = changed
    }

    var isRunning: Bool { state.value.progress.isRunning }

    /// The first configuration is 1; each accepted reload adds 1.
    var generation: Int { state.value.progress.generation }

    var accessLog: LogWriter? { state.value.accessLog }

    /// The state of the configuration, for operators.
    var facts: ConfigurationFacts {
        var facts = state.value.progress.facts
        facts.rulesDigest = Hex.text(plane.configuration.rulesDigest)
        return facts
    }

    /// Reads the configuration again; keeps the running one if there is an error. Reloads that are
    /// requested while one runs are merged into one, after it.
    func reload() {
        guard !plane.isEnding, state.value.progress.requested() else { return }
        state.value.changed(true)
        let (file, current) = (plane.file, plane.configuration)
        let directory = parts.directory
        let basis = PreparedReload.Basis(
            file: file,
            known: directory.servers,
            tls: parts.certificates.surroundings,
            resolver: directory.resolver,
            calls: parts.calls,
            registry: directory.registry,
            outputs: parts.outputs
        )
        let orders = parts.rollouts.orders
        queue.async { [self] in
            let read = ConfigurationLoader.load(file, parties: current.parties)
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
                    with: basis
                )
            }
            let problems = read.problems.map(\.text)
            plane.perform { self.ended(problems, loaded, under: orders) }
        }
    }

    private func ended(
        _ problems: [String],
        _ loaded: Result<PreparedReload, GatewayError>,
        under orders: RolloutOrders
    ) {
        let isNextWanted = state.value.progress.ended()
        // A stop that came meanwhile takes precedence.
        guard !plane.isEnding else { return }
        for problem in problems { plane.log.warning("\(problem)") }
        switch loaded {
        case .success(let next):
            let before = plane.configuration.fileRules
            apply(next)
            // Operators have changed a rollout while files were read.
            if orders != parts.rollouts.orders { serveOrderedRules() }
            parts.rollouts.warn()
            parts.rollouts.obeyFiles(after: before)
            parts.guards.start()
        case .failure(let error): refuse(error)
        }
        state.value.changed(false)
        if isNextWanted { reload() }
    }

    private func apply(_ next: PreparedReload) {
        let (read, judging) = (next.configuration, parts.judging)
        if read.enrolment != state.value.admission.settings {
            let admission = EnrolmentAdmission(read.enrolment, after: state.value.admission)
            state.value.admission = admission
            parts.fleet?.replace(admission)
        }
        let services = judging.services(read, state.value.admission)
        // Before a request can ask one of the new services.
        parts.calls.serves(read)
        for loop in plane.loops {
            loop.reload(
                next.settings,
                services,
                certificates: next.certificates.listeners,
                accessLog: next.accessLog
            ) { judging.judge(read) }
        }
        ControlPlane.warn(next.warnings, plane.log)
        for (box, listener) in zip(parts.operatorTokens, read.admin) {
            box.replace(by: listener.token)
        }
        plane.configuration = read
        parts.calls.loaded(read)
        parts.directory.loaded(next.servers, next.settings.origins)
        parts.certificates.loaded(next.certificates, next.stamps)
        state.value.accessLog = next.accessLog
        // For all parts that keep a copy of the log: see `MessageLog`.
        plane.log.logLevel = Logger.Level(read.log.level)
        state.value.progress.accepted(at: Int64(time(nil)))
        let generation = "generation \(self.generation)"
        plane.log.notice("reloaded \(plane.file): \(generation)")
        parts.reporting.add(Report.Mark(.reload, at: plane.wallSeconds, generation))
    }

    private func refuse(_ error: GatewayError) {
        state.value.progress.refused(error.what, at: Int64(time(nil)))
        plane.log.error(
            """
            reload refused, generation \(generation) stays in use: \(error.what); \
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
        let (read, judging) = (plane.configuration, parts.judging)
        let settings = parts.directory.settings
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
