import Challenges
import Configuration
import Enforcement
import Rules
import Store

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
