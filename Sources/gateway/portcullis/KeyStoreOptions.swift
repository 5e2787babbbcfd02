import ArgumentParser
import ConfigurationReading
import DeviceKey
import KeyCatalog
import SQLiteKeyStore

/// Which store a command is about.
struct KeyStoreOptions: ParsableArguments {
    @Option(
        name: .customLong("config"),
        help: "The gateway's configuration file; it names the store."
    )
    var file: String

    /// Opens the store; prints what is wrong and exits 1 when that fails.
    func administration(creates: Bool = false) throws -> (any KeyArchive, StoreSettings) {
        let (path, settings) = try Self.location(file)
        let keys = try Self.attempt { () throws(StoreProblem) in
            try KeyAdministration(path: path, creates: creates)
        }
        return (keys, settings)
    }

    /// The store's database.
    func path() throws -> String { try Self.path(file) }

    /// The database of the store that a configuration names.
    static func path(_ file: String) throws -> String { try location(file).path }

    private static func location(_ file: String) throws -> (path: String, StoreSettings) {
        let settings = try LoadedFile.store(file)
        guard let path = settings.storeFile else {
            StandardError.write("\(file) names no store; add `store: { sqlite: portcullis.db }`")
            throw ExitCode(1)
        }
        return (path, settings)
    }

    /// Refuses what can't be the name of a key.
    static func checkName(_ name: String) throws {
        guard KeyName(name) == nil else { return }
        throw ValidationError("\(name) names no key: \(KeyName.allowed).")
    }

    /// The key that an operator names; `nil`, with a message, when the name does not stand for one.
    static func key(named name: String, in archive: some KeyArchive) throws -> KeyID? {
        guard let parsed = KeyName(name) else { return nil }
        let match = try attempt { () throws(StoreProblem) in try archive.match(parsed) }
        switch match {
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

    /// Does something with a store; prints what is wrong and exits 1 when that fails.
    static func attempt<Value>(_ body: () throws(StoreProblem) -> Value) throws -> Value {
        do throws(StoreProblem) {
            return try body()
        } catch {
            StandardError.write("portcullis: \(error)")
            throw ExitCode(1)
        }
    }
}
