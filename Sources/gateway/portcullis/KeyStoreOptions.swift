import ArgumentParser
import ConfigurationReading
import SQLiteKeyStore

/// Which store a command is about.
struct KeyStoreOptions: ParsableArguments {
    @Option(
        name: .customLong("config"),
        help: "The gateway's configuration file; it names the store."
    )
    var file: String

    /// Opens the store; prints what is wrong and exits 1 when that fails.
    func administration(creates: Bool = false) throws -> (KeyAdministration, StoreSettings) {
        let settings = try LoadedFile.store(file)
        guard let path = settings.storeFile else {
            StandardError.write("\(file) names no store; add `store: { sqlite: portcullis.db }`")
            throw ExitCode(1)
        }
        let keys = try Self.attempt { () throws(StoreProblem) in
            try KeyAdministration(path: path, creates: creates)
        }
        return (keys, settings)
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
