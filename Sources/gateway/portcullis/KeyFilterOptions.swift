import ArgumentParser
import KeyCatalog
import KeyStore

/// Which keys a command is about.
struct KeyFilterOptions: ParsableArguments {
    @Option(name: .customLong("app-id"), help: "Only keys of this App ID.")
    var appID: String?

    @Option(help: "Only keys of this environment: production, development or test.")
    var environment: String?

    @Option(help: "Only keys of this status: active or revoked.")
    var status: String?

    @Option(help: "Only keys whose risk metric is known and at least this.")
    var risk: UInt32?

    func validate() throws {
        if let environment, KeyEnvironment(rawValue: environment) == nil {
            throw ValidationError(
                "--environment \(environment): use production, development or test."
            )
        }
        if let status, !["active", "revoked"].contains(status) {
            throw ValidationError("--status \(status): use active or revoked.")
        }
    }

    var filter: KeyFilter {
        var filter = KeyFilter()
        filter.appID = appID
        filter.environment = environment.flatMap { KeyEnvironment(rawValue: $0) }
        filter.isRevoked = status.map { $0 == "revoked" }
        filter.riskMin = risk
        return filter
    }
}
