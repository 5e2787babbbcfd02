import ConfigurationReading
import Dispatch
import Lanes
import Logging
import Services
import TLSSession

// Certificates are read again when their files change, as ACME clients change them. A pair that
// can't be used changes nothing: the one in memory stays in use.
extension GatewayServer {
    /// Looks at the files after a pause; the next call takes the place of this one.
    func watchCertificates() {
        dispatchPrecondition(condition: .onQueue(control))
        watchNumber += 1
        guard !LoadedCertificates.files(of: configuration).isEmpty, !isDraining else { return }
        let number = watchNumber
        let pause = surroundings.certificatePace.milliseconds
        control.asyncAfter(deadline: .now() + .milliseconds(Int(pause))) { [self] in
            guard number == watchNumber, !isDraining else { return }
            tickets.rotate(now: Self.monotonicSeconds)
            warnOfEnds()
            look(number)
        }
    }

    /// What a start makes of a configuration.
    static func prepared(
        _ configuration: GatewayConfiguration,
        _ tickets: TicketKeys,
        _ surroundings: Surroundings,
        _ file: String
    ) throws(GatewayError) -> Preparation {
        let tls = TLSSurroundings(tickets, surroundings)
        return try Preparation.complete(configuration, tls: tls, file: file)
    }

    /// What certificates are loaded with while the gateway serves.
    var tlsSurroundings: TLSSurroundings {
        var tls = TLSSurroundings(tickets, surroundings)
        tls.keepStaples(of: certificates)
        return tls
    }

    static var monotonicSeconds: Int64 {
        Int64(clamping: MonotonicClock.nanoseconds / 1_000_000_000)
    }

    private func look(_ number: Int) {
        let files = LoadedCertificates.files(of: configuration)
        loading.async { [self] in
            let stamps = CertificateWatch.stamps(files)
            control.async { self.looked(stamps, number) }
        }
    }

    private func looked(_ stamps: CertificateWatch.Stamps, _ number: Int) {
        // A reload that came meanwhile has loaded them.
        guard number == watchNumber, !isDraining else { return }
        guard certificateWatch.saw(stamps) else { return watchCertificates() }
        let (configuration, tls) = (configuration, tlsSurroundings)
        loading.async { [self] in
            let loaded = LoadedCertificates(configuration, tls)
            control.async { self.loaded(loaded, number) }
        }
    }

    private func loaded(_ next: LoadedCertificates, _ number: Int) {
        guard number == watchNumber, !isDraining else { return }
        defer { watchCertificates() }
        if next.hasErrors {
            let why = next.problems.filter { $0.severity == .error }.map(\.text)
            certificateWatch.refused(why.joined(separator: "; "))
            for problem in why { log.error("\(problem)") }
            return log.error(
                """
                files of certificates have changed and can't be used; the previous ones stay in \
                use; next: mend the files, which are read again when they change
                """
            )
        }
        certificateWatch.accepted()
        Self.warn(next.problems, log)
        take(next)
        log.notice("files of certificates have changed and are in use for new connections")
    }

    /// Uses what was loaded, for connections from now on.
    private func take(_ next: LoadedCertificates) {
        certificates = next.listeners
        for unit in units { unit.replaceCertificates(next.listeners) }
        let secure = configuration.origins.indices.filter { next.origins[$0] != nil }
        guard !secure.isEmpty else { return }
        originCertificates = next.origins
        replaceServers(of: secure)
    }

    private func warnOfEnds() {
        let now = wallSeconds
        guard now - certificateWatch.warnedAt >= CertificateWatch.expiryWarningPace else { return }
        certificateWatch.warnedAt = now
        let contexts = certificates + originCertificates
        for certificate in Set(contexts.compactMap(\.self).flatMap(\.certificates)) {
            if let found = LoadedCertificates.ending(certificate, now) {
                log.warning("\(certificate.file): \(found); next: look at what renews it")
            }
            if let staple = LoadedCertificates.staple(of: certificate, now) {
                log.warning("\(certificate.file): found \(staple.found); use \(staple.use)")
            }
        }
    }

    /// What operators see of the certificates.
    var certificateFacts: TLSFacts {
        var facts = TLSFacts(refusals: certificateWatch.refusals, fault: certificateWatch.fault)
        let places = addresses + configuration.origins.map { "to \($0.name)" }
        for (place, context) in zip(places, certificates + originCertificates) {
            for certificate in context?.certificates ?? [] {
                facts.certificates.append(
                    TLSFacts.Certificate(
                        listener: place,
                        file: certificate.file,
                        names: certificate.names,
                        expiresAtSeconds: certificate.expiry,
                        staple: TLSFacts.Staple(certificate),
                        stapleProblem: certificate.stapleProblem?.rawValue
                    )
                )
            }
        }
        return facts
    }
}

extension TLSSurroundings {
    init(_ tickets: TicketKeys, _ surroundings: GatewayServer.Surroundings) {
        let wallClock = surroundings.wallClock
        self.init(tickets: tickets, wallSeconds: { wallClock() / 1_000 })
    }
}

extension TLSFacts.Staple {
    fileprivate init(_ certificate: TLSCertificate) {
        if certificate.stapleFile == nil {
            self = .notConfigured
        } else if let staple = certificate.staple {
            self = .until(seconds: staple.validUntil)
        } else {
            self = .none
        }
    }
}
