import ArgumentParser
import ConfigurationReading
import DeviceKey
import Gateway
import KeyStore

/// The store of a command.
struct KeyStoreOptions: ParsableArguments {
    @Option(
        name: .customLong("config"),
        help: "The gateway's configuration file; it names the store."
    )
    var file: String

    func administration(creates: Bool = false) throws -> (any KeyArchive, KeySettings) {
        let settings = try LoadedFile.store(file)
        guard let keys = try settings.store.archive(creates: creates) else {
            throw Self.noStore(file)
        }
        return (keys, settings)
    }

    /// The store's database file.
    func path() throws -> String { try Self.path(file) }

    /// The database file of the store that a configuration names.
    static func path(_ file: String) throws -> String {
        switch try LoadedFile.store(file).store {
        case .none: throw noStore(file)
        case .sqlite(let path): return path
        case .postgresql:
            StandardError.write(
                "\(file) keeps its keys in PostgreSQL: use the database's own tools, such as "
                    + "pg_dump and pg_amcheck"
            )
            throw ExitStatus.no
        }
    }

    static func noStore(_ file: String) -> ExitStatus {
        StandardError.write("\(file) names no store; add `store: { sqlite: portcullis.db }`")
        return .no
    }

    /// Refuses a text that can't be the name of a key.
    static func checkName(_ name: String) throws {
        guard KeyName(name) == nil else { return }
        throw ValidationError("\(name) names no key: \(KeyName.allowed).")
    }

    /// The key that an operator names; `nil`, with a message, when the name matches none.
    ///
    /// - deleted: whether it may be a deleted key.
    static func key(
        named name: String,
        in archive: some KeyArchive,
        deleted: KeyFilter.Deleted = .excluded
    ) throws -> KeyID? {
        guard let parsed = KeyName(name) else { return nil }
        switch try archive.match(parsed, deleted: deleted) {
        case .one(let id): return id
        case .none:
            StandardError.write("\(name) is not stored; `portcullis keys list` shows all keys")
        case .several(let ids):
            let list = ids.prefix(10).map { "\n  \($0.logName) \($0.base64)" }.joined()
            let more = ids.count > 10 ? "\n  and \(ids.count - 10) more" : ""
            let problem = "\(name) may be any of \(ids.count) keys; use more digits:"
            StandardError.write(problem + list + more)
        }
        return nil
    }
}

/// The keys that a command is about.
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
