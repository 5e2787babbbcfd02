import Challenges
import ConfigurationReading
import KeyStore
import Rules
import Sessions
import Verification

extension Judge {
    /// A judge of requests to a configuration's rules.
    init(
        _ configuration: GatewayConfiguration,
        _ keys: KeyTable,
        _ challenges: ChallengeIssuer,
        _ sessions: SessionTable
    ) {
        self.init(
            apps: configuration.apps,
            rules: configuration.rules.rules,
            keys: keys,
            challenges: challenges,
            sessions: sessions
        )
    }
}
