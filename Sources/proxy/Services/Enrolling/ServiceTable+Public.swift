import HTTPWire
package import Rules
package import Verification

extension ServiceTable {
    /// The services of the public listeners.
    ///
    /// - path: their prefix, without a slash at its end.
    /// - sessions: the rule of requests to open a session; `nil` where no rule takes sessions.
    /// - plan: the output of `portcullis plan` for the rules; `nil` where it is not served.
    /// - keySet: the public key of signed verdicts; `nil` where it is not served.
    /// - probes: their paths, and the source that knows whether the gateway is ready.
    /// - trials: the open trials of fronts.
    package static func enrolling(
        below path: String,
        _ enrolment: Enrolment,
        sessions: Rule? = nil,
        plan: [UInt8]? = nil,
        keySet: [UInt8]? = nil,
        probes: (paths: ProbePaths, source: any ReadinessSource)? = nil,
        trials: (any TrialKeeping)? = nil
    ) -> ServiceTable {
        enrolling(
            below: path,
            challenges: ChallengeService(enrolment: enrolment),
            keys: KeyService(enrolment: enrolment),
            tokens: enrolment.tokens,
            sessions: sessions.map { (SessionService(decider: enrolment.decider), $0) },
            plan: plan.map(PlanService.entry),
            keySet: keySet.map { KeySetService.entry($0) },
            probes: probes.map { Probe.all($0.paths, $0.source) } ?? [],
            trials: trials
        )
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
        enrolling(
            below: path,
            challenges: UnservedService(),
            keys: UnservedService(),
            sessions: sessions.map { (UnservedService(), $0) },
            plan: servesPlan ? PlanService.unserved : nil,
            keySet: servesKeySet ? KeySetService.entry(nil) : nil,
            probes: Probe.all(probes, nil),
            trials: nil
        )
    }

    private static func enrolling(
        below path: String,
        challenges: some Service,
        keys: some Service,
        tokens: [TokenProof] = [],
        sessions: (service: any Service, rule: Rule)?,
        plan: ServiceEntry?,
        keySet: ServiceEntry?,
        probes: [Probe],
        trials: (any TrialKeeping)?
    ) -> ServiceTable {
        var entries = [
            ServiceEntry("challenges", [.post], takesContent: true, cost: .call, challenges),
            ServiceEntry(
                "keys",
                [.post],
                takesContent: true,
                cost: .verification,
                tokens: tokens,
                keys
            ),
        ]
        if let (service, rule) = sessions {
            entries.append(
                ServiceEntry(
                    "sessions",
                    [.post],
                    takesContent: false,
                    cost: .call,
                    rule: rule,
                    service
                )
            )
        }
        if let plan { entries.append(plan) }
        if let keySet { entries.append(keySet) }
        return ServiceTable(
            below: path,
            elsewhere: .routed,
            entries,
            probes: probes,
            unknown: .endpointUnknown,
            wrongMethod: .methodNotAllowed,
            listsPaths: false,
            trials: trials
        )
    }
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
            let entry = ServiceEntry(
                "probe-\(key)",
                [.get, .head],
                takesContent: false,
                cost: .nothing,
                service
            )
            return ServiceTable.Probe(path, entry)
        }
    }
}
