import ArgumentParser
import ConfigurationReading
import Gateway
import KeyStore
import Rules

/// `--offline`, of commands that only read a configuration.
struct OfflineOptions: ParsableArguments {
    @Flag(
        help: """
            Assume what is absent on this machine, and name it: keys, certificates, secrets, \
            folders, variables of the environment, a shared database.
            """
    )
    var offline = false

    /// A configuration, and what of it is assumed.
    struct Loaded {
        let configuration: GatewayConfiguration
        let assumptions: [Assumption]
    }

    /// Loads a configuration; prints every error and ends with 1 when it is invalid.
    ///
    /// - printsJSON: whether standard output gets a document with the problems, too.
    func load(_ file: String, _ printsJSON: Bool = false) throws -> Loaded {
        let loaded = ConfigurationLoader.load(file, offline: offline)
        if loaded.configuration == nil, printsJSON { StandardOutput.write(loaded.refusedJSON) }
        let configuration = try LoadedFile.taken(loaded, file)
        return Loaded(configuration: configuration, assumptions: loaded.assumptions)
    }

    /// The orders of operators beside the store, or, with a database that is asked, those of a
    /// fleet.
    func orders(
        of configuration: GatewayConfiguration
    ) -> (orders: RolloutOrders, problem: Problem?) {
        asksNoStore(of: configuration)
            ? (RolloutOrders(), nil) : RolloutFile.orders(of: configuration)
    }

    /// Whether the store is a database that is not asked.
    func asksNoStore(of configuration: GatewayConfiguration) -> Bool {
        guard offline, case .postgresql = configuration.store else { return false }
        return true
    }

    /// Names what is assumed, after the answer: a reader of standard output gets the answer alone.
    static func name(_ assumptions: [Assumption]) {
        var named: Set<String> = []
        for text in assumptions.map(\.text) where named.insert(text).inserted {
            StandardError.write(text)
        }
    }
}
