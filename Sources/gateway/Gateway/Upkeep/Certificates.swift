import ConfigurationReading
import Dispatch
import EventLoops
import Logging
import Services

/// The certificates for clients and origins, and the keys of clients' tickets.
///
/// Certificates are read again when their files change, as ACME clients do. A pair that can't be
/// used has no effect: the one in memory stays in use.
final class Certificates: Sendable {
    private struct State {
        /// The certificate of each listener, in their order; `nil` for a plain one.
        var listeners: [TLSContext?]
        /// The context for each origin; `nil` without TLS.
        var origins: [TLSContext?]
        var watch: CertificateWatch
        /// Counts the checks of the files; an older one is skipped.
        var watchNumber = 0
        /// Called with the places of the origins that have new certificates.
        var originsChanged: @Sendable ([Int]) -> Void = { _ in }
    }

    private let plane: ControlPlane
    private let tickets: TicketKeys
    /// The queue on which files are read, which may take seconds.
    private let queue = DispatchQueue(label: "portcullis.certificates")
    private let state: QueueBound<State>

    init(
        _ plane: ControlPlane,
        _ loaded: LoadedCertificates,
        watch: CertificateWatch,
        tickets: TicketKeys
    ) {
        self.plane = plane
        self.tickets = tickets
        state = QueueBound(
            State(listeners: loaded.listeners, origins: loaded.origins, watch: watch),
            on: plane.queue
        )
    }

    /// The context for each origin; `nil` without TLS.
    var origins: [TLSContext?] { state.value.origins }

    /// The surroundings in which certificates are loaded while the gateway serves.
    var surroundings: TLSSurroundings { TLSSurroundings(tickets, plane.surroundings) }

    /// Begins to check the files. `originsChanged` is called on the control queue with the places
    /// of origins that have new certificates.
    func start(originsChanged: @escaping @Sendable ([Int]) -> Void) {
        state.value.originsChanged = originsChanged
        watch()
    }

    /// A reload has read the files.
    func loaded(_ next: LoadedCertificates, _ stamps: CertificateWatch.Stamps) {
        state.value.listeners = next.listeners
        state.value.origins = next.origins
        state.value.watch.loaded(stamps)
        watch()
    }

    /// Checks the files after a pause; the next call replaces this one.
    private func watch() {
        state.value.watchNumber += 1
        let files = LoadedCertificates.files(of: plane.configuration)
        guard !files.isEmpty, !plane.isDraining else { return }
        let number = state.value.watchNumber
        plane.perform(after: DispatchTimeInterval(plane.surroundings.certificatePace)) { [self] in
            guard isCurrent(number) else { return }
            tickets.rotate(now: ControlPlane.monotonicSeconds)
            warnOfEnds()
            look(number)
        }
    }

    private func isCurrent(_ number: Int) -> Bool {
        number == state.value.watchNumber && !plane.isDraining
    }

    private func look(_ number: Int) {
        let files = LoadedCertificates.files(of: plane.configuration)
        queue.async { [self] in
            let stamps = CertificateWatch.stamps(files)
            plane.perform { self.looked(stamps, of: files, number) }
        }
    }

    private func looked(_ stamps: CertificateWatch.Stamps, of files: [String], _ number: Int) {
        // A reload that came meanwhile has loaded them.
        guard isCurrent(number) else { return }
        let gone = state.value.watch.missed(stamps, of: files).joined(separator: ", ")
        if !gone.isEmpty {
            state.value.watch.refused("\(gone): gone, or can't be read")
            plane.log.error(
                """
                files of certificates are gone, or their folder can't be read: \(gone); what was \
                loaded stays in use, and a reload or a restart would be refused; next: put them \
                back; more: portcullis help PortcullisCertificateLoadFails
                """
            )
        }
        guard state.value.watch.saw(stamps) else { return watch() }
        let (configuration, tls) = (plane.configuration, surroundings)
        queue.async { [self] in
            var loaded = LoadedCertificates(configuration, tls)
            if !loaded.hasErrors { loaded.checkKeys() }
            let next = loaded
            plane.perform { self.replaced(by: next, number) }
        }
    }

    private func replaced(by next: LoadedCertificates, _ number: Int) {
        guard isCurrent(number) else { return }
        defer { watch() }
        if next.hasErrors {
            let why = next.problems.filter { $0.severity == .error }.map(\.text)
            state.value.watch.refused(why.joined(separator: "; "))
            for problem in why { plane.log.error("\(problem)") }
            return plane.log.error(
                """
                files of certificates have changed and can't be used; the previous ones stay in \
                use; next: mend the files, which are read again when they change
                """
            )
        }
        state.value.watch.accepted()
        ControlPlane.warn(next.problems, plane.log)
        take(next)
        plane.log.notice("files of certificates have changed and are in use for new connections")
    }

    /// Uses the loaded certificates for connections from now on.
    private func take(_ next: LoadedCertificates) {
        state.value.listeners = next.listeners
        for loop in plane.loops { loop.replaceCertificates(next.listeners) }
        let secure = plane.configuration.origins.indices.filter { next.origins[$0] != nil }
        guard !secure.isEmpty else { return }
        state.value.origins = next.origins
        state.value.originsChanged(secure)
    }

    private func warnOfEnds() {
        let now = plane.wallSeconds
        warnOfLists(now)
        guard now - state.value.watch.warnedAt >= CertificateWatch.expiryWarningPace else { return }
        state.value.watch.warnedAt = now
        let contexts = state.value.listeners + state.value.origins
        for certificate in Set(contexts.compactMap(\.self).flatMap(\.certificates)) {
            if let found = LoadedCertificates.ending(certificate, now) {
                plane.log.warning("\(certificate.file): \(found); next: look at what renews it")
            }
        }
    }

    private func warnOfLists(_ now: Int64) {
        let state = state.value
        let lists = Set(state.listeners.compactMap(\.self).flatMap(\.revocationLists))
        guard now - state.watch.warnedOfListsAt >= CertificateWatch.revocationWarningPace,
            !lists.isEmpty
        else { return }
        self.state.value.watch.warnedOfListsAt = now
        for found in lists.compactMap({ $0.ending(now) }) {
            plane.log.warning("\(found); next: look at what fetches it from the authority")
        }
    }

    /// The facts for operators. `addresses` are the listeners', in their order.
    func facts(_ addresses: [String]) -> TLSFacts {
        let state = state.value
        var facts = TLSFacts(refusals: state.watch.refusals, fault: state.watch.fault)
        for (listener, context) in zip(addresses, state.listeners) {
            facts.revocationLists += (context?.revocationLists ?? []).map { list in
                TLSFacts.RevocationList(
                    listener: listener,
                    file: list.file,
                    issuer: list.issuer,
                    endsAtSeconds: list.end
                )
            }
        }
        let places = addresses + plane.configuration.origins.map { "to \($0.name)" }
        for (place, context) in zip(places, state.listeners + state.origins) {
            for certificate in context?.certificates ?? [] {
                facts.certificates.append(
                    TLSFacts.Certificate(
                        listener: place,
                        file: certificate.file,
                        names: certificate.names,
                        expiresAtSeconds: certificate.expiry
                    )
                )
            }
        }
        return facts
    }
}

extension TLSSurroundings {
    init(_ tickets: TicketKeys, _ surroundings: GatewaySurroundings) {
        let wallClock = surroundings.wallClock
        self.init(tickets: tickets, wallSeconds: { wallClock() / 1_000 })
    }
}
