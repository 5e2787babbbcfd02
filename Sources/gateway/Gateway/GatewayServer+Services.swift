import AppAttest
import Challenges
import ConfigurationReading
import KeyStore
import Proxy
import Services
import Sessions
import Verification

extension GatewayServer {
    /// What the public listeners answer themselves.
    static func services(
        _ configuration: GatewayConfiguration,
        _ keys: KeyTable,
        _ issuer: ChallengeIssuer,
        _ sessions: SessionTable,
        _ admission: EnrolmentAdmission,
        _ probes: ProbeDesk
    ) -> ServiceTable {
        let enrolment = Enrolment(
            apps: configuration.apps,
            roots: [AppleRoots.appAttestation],
            receiptRoots: [AppleRoots.rootG3],
            keys: keys,
            issuer: issuer,
            admission: admission
        )
        return .enrolling(
            below: configuration.endpointsPath,
            enrolment,
            keys,
            sessions: configuration.sessionOpening.map { (sessions, $0) },
            probes: (configuration.probes, probes)
        )
    }
}
