import ConfigurationReading
import Dispatch
import Glibc
import Lanes
import Logging
import Origins
import Proxy
import Rules
import Services
import Verification

// A reload reads files and looks names up, which may take seconds. That happens on a queue of its
// own, so that the control queue goes on answering operators and signals.
extension GatewayServer {
    /// Whether a reload is being made.
    enum Reloading {
        /// Leaves to `running`.
        case none
        /// Files are being read. Leaves to `none`, `runningBeforeNext`.
        case running
        /// Another was asked for meanwhile: the files may have changed since they were read.
        /// Leaves to `running`.
        case runningBeforeNext
    }

    /// Reads the configuration again; keeps the running one when anything is wrong. Reloads that
    /// are asked for while one runs are made as one, after it.
    func reload() {
        dispatchPrecondition(condition: .onQueue(control))
        guard !isEnding else { return }
        guard case .none = reloading else {
            reloading = .runningBeforeNext
            return
        }
        reloading = .running
        tell(.reloading(at: MonotonicClock.nanoseconds))
        let (file, current, known) = (file, configuration, servers)
        let (tls, resolver, outputs) = (tlsSurroundings, resolver, outputs)
        let (devices, book, orders) = (devices, book, rollouts.book)
        loading.async { [self] in
            let read = ConfigurationLoader.load(file)
            let loaded = Result { () throws(GatewayError) in
                guard let next = read.configuration else {
                    throw GatewayError(
                        "the configuration is invalid",
                        hint: "`portcullis check \(file)` says more."
                    )
                }
                return try LoadedConfiguration(
                    next.ordered(by: orders),
                    replacing: current,
                    file,
                    known,
                    tls,
                    resolver,
                    devices,
                    book,
                    outputs
                )
            }
            let problems = read.problems.map(\.text)
            control.async { self.reloadEnded(problems, loaded, orders) }
        }
    }

    private func reloadEnded(
        _ problems: [String],
        _ loaded: Result<LoadedConfiguration, GatewayError>,
        _ orders: RolloutBook
    ) {
        let isNextWanted = if case .runningBeforeNext = reloading { true } else { false }
        reloading = .none
        // A stop that came meanwhile goes before it.
        guard !isEnding else { return }
        for problem in problems { log.warning("\(problem)") }
        reloadTriedAt = Int64(time(nil))
        switch loaded {
        case .success(let next):
            apply(next)
            // Operators have changed a rollout while files were read.
            if orders != rollouts.book { serveOrderedRules() }
            warnOfOrders()
            startGuards()
        case .failure(let error): refuse(error)
        }
        tell(.ready, status: servingStatus)
        if isNextWanted { reload() }
    }

    private func apply(_ next: LoadedConfiguration) {
        let (read, keys, issuer, sessions) = (next.configuration, keys, issuer, sessions)
        if read.enrolment.admission != admission.settings {
            admission = EnrolmentAdmission(read.enrolment.admission)
        }
        let services = Self.services(read, keys, issuer, sessions, admission, probes)
        for unit in units {
            unit.reload(next, services) { Judge(read, keys, issuer, sessions) }
        }
        Self.warn(next.warnings, log)
        operatorTokens.replace(by: read.operatorToken)
        apple.reload(read.apple)
        devices.reload(DeviceDesk.Terms(read.apple))
        renewer?.reload(ReceiptRenewer.Settings(read))
        configuration = next.configuration
        servers = next.servers
        origins = next.settings.origins
        book.keep(origins)
        scheduleLookUp()
        certificates = next.certificates.listeners
        originCertificates = next.certificates.origins
        certificateWatch.loaded(next.stamps)
        watchCertificates()
        accessLog = next.accessLog
        log.logLevel = Logger.Level(next.configuration.log.level)
        generation += 1
        refusedReload = nil
        log.notice("reloaded \(file): generation \(generation)")
        reporting.add(Report.Mark(.reload, at: wallSeconds, "generation \(generation)"))
    }

    /// Opens the access log's file anew, so that one that was moved aside is let go of.
    func reopenLog() {
        dispatchPrecondition(condition: .onQueue(control))
        guard case .file(let file) = configuration.log.access else {
            return log.notice("the access log is no file: there is nothing to open again")
        }
        accessLog?.reopen(file) { [self] error in
            control.async { [self] in
                if let error {
                    log.error("\(error.what); lines still go to the previous file; \(error.hint)")
                } else {
                    log.notice("the access log \(file) was opened again")
                }
            }
        }
    }

    private func refuse(_ error: GatewayError) {
        refusedReload = error.what
        refusedReloads += 1
        log.error(
            "reload refused, generation \(generation) stays in use: \(error.what); \(error.hint)"
        )
        // A file that was moved aside is let go of all the same.
        if case .file = configuration.log.access { reopenLog() }
    }
}
