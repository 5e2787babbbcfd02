import AppAttest
import ConfigurationReading
import KeyStore
import Proxy
import Rules
import Services
import Synchronization
import Tokens
import Verification

/// The objects that all event loops use to judge requests, whatever the configuration.
struct JudgingParts: Sendable {
    let keys: KeyTable
    let issuer: ChallengeIssuer
    let sessions: SessionTable
    let rates = KeyRates()
    let probes = ProbeResponder()
    let trials = OpenTrials()
    /// Google's list, for enrolments of Android phones.
    let statusLists = StatusLists()

    /// A judge of requests to a configuration's rules.
    func judge(_ configuration: GatewayConfiguration) -> Judge {
        var judge = Judge(
            apps: configuration.apps,
            rules: configuration.rules.rules,
            keys: keys,
            challenges: issuer,
            sessions: sessions
        )
        judge.rates = rates
        return judge
    }

    /// The services of the public listeners.
    func services(
        _ configuration: GatewayConfiguration,
        _ admission: EnrolmentAdmission
    ) -> ServiceTable {
        trials.change { $0.endpoints = configuration.endpointsPath }
        let enrolment = Enrolment(
            KeyAttestor(
                apps: configuration.apps,
                statusList: { [statusLists] in statusLists.newest }
            ),
            keys: keys,
            issuer: issuer,
            admission: admission
        )
        return .enrolling(
            below: configuration.endpointsPath,
            enrolment,
            sessions: configuration.sessionOpening.map { (sessions, $0) },
            plan: configuration.servedPlan,
            keySet: configuration.verdict?.publishes == true
                ? configuration.verdictSigner?.keySet : nil,
            probes: (configuration.probes, probes),
            trials: trials
        )
    }
}

/// The open trials of fronts, which the event loops share.
final class OpenTrials: TrialKeeping {
    private let trials = Mutex(FrontTrials())

    func change<Value: Sendable>(_ body: (inout FrontTrials) -> Value) -> Value {
        trials.withLock { body(&$0) }
    }
}
