import HTTPWire
package import KeyStore
package import Rules
package import Tokens
package import Verification

extension ServiceTable {
    /// The services of the public listeners.
    ///
    /// - path: their prefix, without a slash at its end.
    /// - sessions: the open sessions, and the rule of requests to open one; `nil` where no rule
    ///   takes sessions.
    /// - plan: the output of `portcullis plan` for the rules; `nil` where it is not served.
    /// - keySet: the public key of signed verdicts; `nil` where it is not served.
    /// - probes: their paths, and the source that knows whether the gateway is ready.
    /// - trials: the open trials of fronts.
    package static func enrolling(
        below path: String,
        _ enrolment: Enrolment,
        _ keys: KeyTable,
        sessions: (table: SessionTable, rule: Rule)? = nil,
        plan: [UInt8]? = nil,
        keySet: [UInt8]? = nil,
        probes: (paths: ProbePaths, source: any ReadinessSource)? = nil,
        trials: (any TrialKeeping)? = nil
    ) -> ServiceTable {
        enrolling(
            below: path,
            challenges: ChallengeService(enrolment: enrolment),
            keys: KeyService(
                enrolment: enrolment,
                store: { keys.enrol($0, spending: $1, completion: $2) }
            ),
            tokens: enrolment.tokens,
            sessions: sessions.map {
                (SessionService(sessions: $0.table, issuer: enrolment.issuer), $0.rule)
            },
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
