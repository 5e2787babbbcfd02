import HTTPWire
package import Rules
package import Verification

extension ServiceTable {
    /// The services of the public listeners.
    ///
    /// - path: their prefix, without a slash at its end.
    package static func enrolling(
        below path: String,
        _ enrolment: Enrolment,
        _ further: PublicServices
    ) -> ServiceTable {
        let sessions = further.sessions.map { rule in
            (service: SessionService(decider: enrolment.decider), rule: rule)
        }
        var entries = rows(
            challenges: ChallengeService(enrolment: enrolment),
            keys: KeyService(enrolment: enrolment),
            tokens: enrolment.tokens,
            sessions: sessions
        )
        if let plan = further.plan { entries.append(PlanService.entry(plan)) }
        if let keySet = further.keySet { entries.append(KeySetService.entry(keySet)) }
        let probes = further.probes.map { Probe.all($0.paths, $0.source) } ?? []
        return ServiceTable(below: path, for: .clients(further.trials), entries, probes: probes)
    }

    /// The services of the public listeners for programs that only ask which requests the gateway
    /// answers itself.
    package static func unserved(
        below path: String,
        sessions: Rule?,
        servesPlan: Bool = false,
        servesKeySet: Bool = false,
        probes: ProbePaths = ProbePaths()
    ) -> ServiceTable {
        var entries = rows(
            challenges: UnservedService(),
            keys: UnservedService(),
            tokens: [],
            sessions: sessions.map { (UnservedService(), $0) }
        )
        if servesPlan { entries.append(PlanService.unserved) }
        if servesKeySet { entries.append(KeySetService.entry(nil)) }
        let all = Probe.all(probes, nil)
        return ServiceTable(below: path, for: .clients(nil), entries, probes: all)
    }

    private static func rows(
        challenges: any Service,
        keys: any Service,
        tokens: [TokenProof],
        sessions: (service: any Service, rule: Rule)?
    ) -> [ServiceEntry] {
        let call = ServiceEntry.Terms(takesContent: true, cost: .call)
        let enrolling = ServiceEntry.Terms(takesContent: true, cost: .verification, tokens: tokens)
        var entries = [
            ServiceEntry("challenges", [.post], on: call, by: challenges),
            ServiceEntry("keys", [.post], on: enrolling, by: keys),
        ]
        if let (service, rule) = sessions {
            let opening = ServiceEntry.Terms(cost: .call, rule: rule)
            entries.append(ServiceEntry("sessions", [.post], on: opening, by: service))
        }
        return entries
    }
}

/// What public listeners serve beside enrolment.
package struct PublicServices {
    /// The rule of requests to open a session; `nil` where no rule takes sessions.
    package var sessions: Rule?
    /// The output of `portcullis plan` for the rules; `nil` where it is not served.
    package var plan: [UInt8]?
    /// The public key of signed verdicts; `nil` where it is not served.
    package var keySet: [UInt8]?
    /// The paths of probes, and the source that knows whether the gateway is ready.
    package var probes: (paths: ProbePaths, source: any ReadinessSource)?
    /// The open trials of fronts.
    package var trials: (any TrialKeeping)?

    package init() {}
}

/// The paths of probes on the public listeners.
package struct ProbePaths: Hashable, Sendable {
    /// The path that tells whether the process serves; `nil` for none.
    package var live: String?
    /// The path that tells whether clients should come; `nil` for none.
    package var ready: String?

    package init(live: String? = nil, ready: String? = nil) {
        (self.live, self.ready) = (live, ready)
    }

    /// Each path that is set, with its key in the configuration.
    package var all: [(key: String, path: String)] {
        [("live", live), ("ready", ready)].compactMap { key, path in path.map { (key, $0) } }
    }
}

/// Whether traffic should be sent to a gateway.
package enum Readiness: Hashable, Sendable {
    /// It serves what it can; the list names the current failures.
    case ready([LocalFault])
    /// Not ready; the most lasting reason.
    case unready(LocalFault)

    /// The text for probes of a gateway that is ready.
    static func text(_ degradations: [LocalFault]) -> String {
        "ready\n" + degradations.map { "degraded: \($0.rawValue)\n" }.joined()
    }
}

/// Knows whether clients should come.
package protocol ReadinessSource: Sendable {
    /// Reports whether traffic should be sent here, once, on any thread.
    func askReadiness(_ completion: @escaping @Sendable (Readiness) -> Void)
}

/// Answers a probe on a public listener. It tells clients no more than other requests show: that
/// the gateway serves, or the one reason why not.
struct ProbeService: Service {
    enum Question {
        case live
        case ready(any ReadinessSource)
    }

    let question: Question

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        switch question {
        case .live: .now(ServiceResult(text: "ok\n"))
        case .ready(let source):
            .later { completion in
                source.askReadiness { readiness in
                    switch readiness {
                    case .ready(let faults): completion(ServiceResult(text: Readiness.text(faults)))
                    case .unready(let fault): completion(ServiceResult(.fault(fault)))
                    }
                }
            }
        }
    }
}

extension ServiceTable.Probe {
    /// The probes of public listeners; `source` is `nil` for programs that only ask which requests
    /// the gateway answers itself.
    static func all(_ paths: ProbePaths, _ source: (any ReadinessSource)?) -> [ServiceTable.Probe] {
        var services: [(key: String, path: String, service: any Service)] = []
        if let path = paths.live { services.append(("live", path, ProbeService(question: .live))) }
        if let path = paths.ready {
            let served = source.map { ProbeService(question: .ready($0)) as any Service }
            services.append(("ready", path, served ?? UnservedService()))
        }
        // It does not count as a call of its address: if there is a load balancer in front, probes
        // and all clients may share one address.
        return services.map { key, path, service in
            let entry = ServiceEntry("probe-\(key)", [.get, .head], by: service)
            return ServiceTable.Probe(path, entry)
        }
    }
}
