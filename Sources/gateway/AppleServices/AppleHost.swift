package import KeyStore

/// One of the hosts that are called.
package struct AppleHost: Hashable, Sendable {
    package let family: AppleService.Family
    package let environment: KeyEnvironment

    package init(_ family: AppleService.Family, _ environment: KeyEnvironment) {
        self.family = family
        self.environment = environment
    }

    /// All there can be, in the order of metrics.
    package static let all = AppleService.Family.allCases.flatMap { family in
        KeyEnvironment.allCases.map { AppleHost(family, $0) }
    }

    /// Its key in the configuration.
    package var key: String {
        let suffix = environment == .production ? "" : "_\(environment.rawValue)"
        return family.rawValue.replacing("-", with: "_") + suffix
    }

    /// Where Apple has it; `nil` for keys of a test authority, which Apple does not know.
    ///
    /// Apple, "Assessing fraud risk" and "Accessing and modifying per-device data". Some articles
    /// swap the two hosts of DeviceCheck.
    package var address: String? {
        switch (family, environment) {
        case (.receipts, .production): "https://data.appattest.apple.com"
        case (.receipts, .development): "https://data-development.appattest.apple.com"
        case (.deviceCheck, .production): "https://api.devicecheck.apple.com"
        case (.deviceCheck, .development): "https://api.development.devicecheck.apple.com"
        case (_, .test): nil
        }
    }
}
