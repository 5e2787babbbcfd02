package import AppAttest
package import HTTPWire
package import KeyStore
package import Rules
package import Verification

/// What a report counts of a request that has a verdict.
package struct ReportedRequest: Sendable {
    /// Whom `enforce` would have answered how.
    package enum Fate: Sendable {
        case forwarded
        /// It would have been refused at each share that takes in this bucket.
        case refused(Bucket)
    }

    package let verdict: Verdict
    package let environment: KeyEnvironment?
    package let build: AppBuild
    /// The key that it names, where that is enrolled here.
    package let install: KeyID?
    /// The client's address, which stands for the install where that is not known.
    package let address: IPAddress
    package let fate: Fate
    /// Whether it was really refused.
    package let isRefused: Bool

    package init(
        _ ruling: Ruling,
        claimed: AppVersion?,
        address: IPAddress,
        fate: Fate,
        isRefused: Bool
    ) {
        verdict = ruling.verdict
        environment = ruling.environment
        build = AppBuild(signed: ruling.appVersion, claimed: claimed)
        install = ruling.environment == nil ? nil : ruling.keyID
        self.address = address
        self.fate = fate
        self.isRefused = isRefused
    }
}
