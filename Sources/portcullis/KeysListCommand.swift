import AppAttest
import ArgumentParser
import Cryptography
import SQLiteStore
import Store

struct KeysListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "One line a key: key id, app, environment, status, counter, last use."
    )

    @OptionGroup var store: KeyStoreOptions
    @OptionGroup var filter: KeyFilterOptions

    func run() throws {
        let (keys, _) = try store.administration()
        try keys.forEach(filter.filter) { record in
            let status = if case .active = record.status { "active" } else { "revoked" }
            let used = record.lastUsedAt.map { UnixTime(seconds: $0).iso8601 } ?? "never"
            print(
                record.keyID.base64,
                record.appID,
                record.environment.rawValue,
                status,
                record.counters.highest.rawValue,
                used,
                separator: "\t"
            )
        }
    }
}
