package import HTTPWire
package import Rules
package import Services

/// All that the gateway is told: complete and consistent.
///
/// Made by ``ConfigurationLoader`` from files without a problem, and in no other way.
package struct GatewayConfiguration: Sendable {
    /// `listen`, mandatory: at least one, no address twice.
    package let listeners: [ListenSettings]
    /// `admin.address`: metrics, status and probes; `nil` for none.
    package let admin: ServerAddress?
    /// `admin.calls`: default `unix`.
    package let adminCalls: AdminCalls
    /// `admin.hosts`: names by which it is asked beside `localhost`, in lower case. Default none.
    package let adminHosts: [String]
    /// `admin.token_file`: what callers show; `nil` where they need not.
    package let operatorToken: OperatorToken?
    /// `lanes`: default `auto`.
    package let lanes: LaneCount
    /// `origins`, mandatory, in the order of the file; rules refer to them by index.
    package let origins: [UpstreamSettings]
    /// `apps`: mandatory when a rule verifies.
    package let apps: [AppPolicy]
    /// `store`: mandatory when there is an app.
    package let store: StorePlace
    /// `store.must_exist`: a start without the database's file is refused. Default false: it makes
    /// a new store.
    package let storeMustExist: Bool
    /// `store.expire_unused`: keys that were not used for so long are deleted. Default off.
    package let expireUnused: KeyAge?
    package let challenges: ChallengeSettings
    package let sessions: SessionSettings
    package let enrolment: EnrolmentSettings
    package let apple: AppleSettings
    /// `trusted_proxies`: whose word about the client's address is taken. Default: nobody's.
    package let trustedProxies: [IPNetwork]
    /// `client_address`: the field those proxies write. Default x-forwarded-for.
    package let addressSource: ClientAddress.Source
    /// `traces`: whether a trace begins here. Default carry.
    package let traces: TraceRule
    package let timeouts: TimeoutSettings
    package let limits: LimitSettings
    package let log: LogSettings
    package let process: ProcessSettings
    package let hooks: HookSettings
    /// `endpoints`: under which path the gateway answers itself. Default /.well-known/app-attest.
    package let endpointsPath: String
    /// `probes`: where the public listeners answer them. Default: off.
    package let probes: ProbePaths
    /// `spill_folder`: where held content goes that is too large for memory. Default: the first of
    /// /tmp, /var/tmp and /dev/shm that is on another file system than the store, a disk rather
    /// than memory; /tmp when none is.
    package let spillFolder: String
    /// `rules` and `default`.
    package let fileRules: RuleSet
    /// The same with what operators have ordered; `nil` where they have ordered nothing.
    var orderedRules: RuleSet? = nil
    /// The rules as they are served.
    package var rules: RuleSet { orderedRules ?? fileRules }
    /// Where each rule stands, by its number; the default last.
    package let rulePlaces: [Problem.Place]
    /// Where the settings stand that are looked at again when they are used, by key path.
    let places: [String: Problem.Place]

    /// Where a setting stands, as `listen[0].tls.key` or `origins.shop.servers[1]`; the file's
    /// start for one that stands nowhere.
    package func place(of keyPath: String) -> Problem.Place {
        places[keyPath] ?? places[""] ?? Problem.Place(file: "", line: 1)
    }

    /// The rule of requests to open a session; `nil` where no rule accepts sessions.
    package var sessionOpening: Rule? {
        // An order may turn such a rule off and on again, and sessions outlive that.
        guard fileRules.rules.contains(where: { $0.accept.takesSessions }) else { return nil }
        return .openingSessions(apps: apps.map(\.id))
    }

    /// Whether the admin listener serves calls that change something.
    package var servesAdminCalls: Bool {
        switch adminCalls {
        case .unix: admin?.isUnix ?? false || operatorToken != nil
        case .any: admin != nil
        }
    }

    /// The configuration with rules as operators have ordered them.
    package func ordered(by book: RolloutBook) -> GatewayConfiguration {
        var ordered = self
        ordered.orderedRules = book.rules(fileRules)
        return ordered
    }

    /// The origin of a rule; `nil` for a rule that denies.
    package func origin(of rule: Rule) -> UpstreamSettings? {
        rule.origin.map { origins[$0.rawValue] }
    }
}
