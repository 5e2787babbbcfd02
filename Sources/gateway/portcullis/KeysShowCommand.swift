import AppAttest
import ArgumentParser
import KeyStore
import SQLiteKeyStore

struct KeysShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Everything that is stored of a key, as JSON."
    )

    @OptionGroup var store: KeyStoreOptions

    @Argument(help: "The key id in base64, or the short name that logs show.")
    var key: String

    func run() throws {
        let (keys, _) = try store.administration()
        let ids: [KeyID]
        if let id = KeyID(base64: key) {
            ids = [id]
        } else {
            ids = try KeyStoreOptions.attempt { () throws(StoreProblem) in
                try keys.keyIDs(loggedAs: key)
            }
        }
        var found = 0
        for id in ids {
            let record = try KeyStoreOptions.attempt { () throws(StoreProblem) in
                try keys.record(id)
            }
            guard let record else { continue }
            found += 1
            guard StandardOutput.write(KeyLine.text(record) + "\n") else { throw ExitCode(1) }
        }
        guard found > 0 else {
            StandardError.write("no key \(key) is stored; `portcullis keys list` shows all")
            throw ExitCode(1)
        }
    }
}
