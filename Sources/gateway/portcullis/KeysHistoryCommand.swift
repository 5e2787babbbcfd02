import ArgumentParser
import Cryptography
import DeviceKey
import KeyCatalog

struct KeysHistoryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: """
            What commands have done to keys, the newest first: when, what, key id or number of \
            keys, who, why.
            """
    )

    @OptionGroup var store: KeyStoreOptions

    @Option(help: "At most so many lines.")
    var limit = 100

    @Argument(help: "Of this key alone: a key id in base64, or the short name of the log.")
    var key: String?

    func validate() throws {
        if let key { try KeyStoreOptions.checkName(key) }
        guard (1...100_000).contains(limit) else {
            throw ValidationError("--limit \(limit): use 1…100000.")
        }
    }

    func run() throws {
        let (archive, _) = try store.administration()
        var keyID: KeyID?
        if let key {
            guard let found = try KeyStoreOptions.key(named: key, in: archive) else {
                throw ExitCode(1)
            }
            keyID = found
        }
        let changes = try KeyStoreOptions.attempt { () throws(StoreProblem) in
            try archive.changes(of: keyID, limit: limit)
        }
        for change in changes {
            let columns = [
                UnixTime(seconds: change.note.now).iso8601, change.action.rawValue,
                change.keyID?.base64 ?? "\(change.keys) keys", change.note.actor,
                change.note.why ?? "-",
            ]
            guard StandardOutput.write(columns.joined(separator: "\t") + "\n") else {
                throw ExitCode(1)
            }
        }
    }
}
