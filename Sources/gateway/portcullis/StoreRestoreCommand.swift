import ArgumentParser
import KeyCatalog
import SQLiteKeyStore

struct StoreRestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Put a backup in the place of the store's database. Stop the gateway first.",
        discussion: """
            The database that is there is kept beside the new one. Where it can be read, all that \
            it knows is merged: keys, counters, revocations, deletions. Where it can't, keys that \
            were revoked since the backup are good again, keys that were enrolled since are \
            unknown, and each other key needs a challenge before it is good, so that no assertion \
            passes twice.
            """
    )

    @OptionGroup var store: KeyStoreOptions

    @OptionGroup var reason: ChangeNoteOptions

    @Argument(help: "What `store backup` has made.")
    var file: String

    func run() throws {
        let path = try store.path()
        let restore = StoreRestore(of: file, toStore: path, reason.note)
        let report = try KeyStoreOptions.attempt { () throws(StoreProblem) in try restore.run() }
        StandardOutput.write("\(path): restored from \(file), keys \(report.keys)\n")
        if let kept = report.kept {
            StandardOutput.write("the database that was there is \(kept)\n")
        }
        switch report.present {
        case .merged:
            StandardOutput.write("all that it knew is merged: nothing was lost\n")
        case .lost(let detail):
            StandardError.write(
                """
                warning: the database that was there could not be merged: it \(detail)
                  keys revoked or deleted since the backup are good again: revoke them anew
                  keys enrolled since are unknown: their devices enrol again
                  every other key is good again with its next challenge; where a rule takes none, \
                the app enrols another key
                """
            )
        }
    }
}
