import AppAttest
import ConfigurationReading
import KeyStore
import Parties
import Proxy
import Rules
import Services
import Synchronization
import Verification

/// The objects that all event loops use to judge requests, whatever the configuration.
struct JudgingParts: Sendable {
    let decider: Decider
    /// Google's list, for enrolments of Android phones.
    let statusList: CurrentStatusList
    let rates = KeyRates()
    let probes = ProbeResponder()
    let trials = OpenTrials()

    /// A judge of requests to a configuration's rules.
    func judge(_ configuration: GatewayConfiguration) -> Judge {
        var judge = Judge(
            apps: configuration.apps,
            rules: configuration.rules.rules,
            decider: decider
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
                statusList: { [statusList] in statusList.newest }
            ),
            decider: decider,
            admission: admission
        )
        var further = PublicServices()
        further.sessions = configuration.sessionOpening
        further.plan = configuration.servedPlan
        if configuration.verdict?.publishes == true {
            further.keySet = configuration.verdictSigner?.keySet
        }
        further.probes = (configuration.probes, probes)
        further.trials = trials
        return .enrolling(below: configuration.endpointsPath, enrolment, further)
    }
}

/// The open trials of fronts, which the event loops share.
final class OpenTrials: TrialKeeping {
    private let trials = Mutex(FrontTrials())

    func change<Value: Sendable>(_ body: (inout FrontTrials) -> Value) -> Value {
        trials.withLock { body(&$0) }
    }
}
