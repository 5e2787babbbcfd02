import ConfigurationReading
import Foundation

/// Where a gateway keeps, beside its store, what its next start needs: orders about rollouts, and
/// copies of what it has fetched.
enum KeptFiles {
    /// The variable with the folder of `StateDirectory=` (systemd.exec(5)); the image has it, too.
    private static let variable = "STATE_DIRECTORY"

    /// The folder of the environment; `nil` without one.
    private static let stateFolder = folder(ProcessInfo.processInfo.environment)

    /// The first of the folders that the variable names; `nil` where it names none.
    static func folder(_ environment: [String: String]) -> String? {
        let first = environment[variable]?.split(separator: ":").first
        return first.flatMap { $0.hasPrefix("/") ? String($0) : nil }
    }

    /// The path of these files without their endings; `nil` without a store.
    ///
    /// They are beside the database's file, where the gateway may write. If the store is no file,
    /// they are in the folder of the environment, and without one beside the configuration.
    static func path(_ configuration: GatewayConfiguration) -> String? {
        switch configuration.store {
        case .none: nil
        case .sqlite, .postgresql: ordersPath(configuration)
        }
    }

    /// The same for orders about rollouts, which are kept without a store, too: a rule that takes
    /// only tokens needs none.
    static func ordersPath(_ configuration: GatewayConfiguration) -> String {
        switch configuration.store {
        case .sqlite(let file): file
        case .none, .postgresql: path(configuration.place(of: "").file, in: stateFolder)
        }
    }

    static func path(_ configurationFile: String, in folder: String?) -> String {
        guard let folder, let name = configurationFile.split(separator: "/").last else {
            return configurationFile
        }
        return "\(folder)/\(name)"
    }
}
