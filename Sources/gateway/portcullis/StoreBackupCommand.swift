import ArgumentParser
import KeyCatalog
import SQLiteKeyStore

struct StoreBackupCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copy the store into a new file, with or without a running gateway.",
        discussion: """
            The copy holds every request that was admitted before this command began. It has the \
            secret of the enrolment challenges too, so its mode is 0600. `store restore` puts it \
            back.
            """
    )

    @OptionGroup var store: KeyStoreOptions

    @Argument(help: "The file to make; it must not exist.")
    var file: String

    func run() throws {
        let path = try store.path()
        let report = try KeyStoreOptions.attempt { () throws(StoreProblem) in
            try StoreBackup.make(ofStore: path, to: file)
        }
        StandardOutput.write(
            "\(file): keys \(report.keys), generation \(report.generation), bytes \(report.bytes)\n"
        )
    }
}
