import Challenges
import ConfigurationReading
import KeyStore
import Rules
import Verification

extension Judge {
    /// A judge of requests to a configuration's rules.
    init(_ configuration: GatewayConfiguration, keys: KeyTable, challenges: ChallengeIssuer) {
        self.init(
            apps: configuration.apps,
            rules: configuration.rules.rules,
            keys: keys,
            challenges: challenges
        )
    }
}
