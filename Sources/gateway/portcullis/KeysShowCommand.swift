import ArgumentParser
import KeyCatalog

struct KeysShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Everything that is stored of a key, as JSON."
    )

    @OptionGroup var store: KeyStoreOptions

    @Argument(help: "The key id in base64, or the short name that the log shows.")
    var key: String

    func validate() throws { try KeyStoreOptions.checkName(key) }

    func run() throws {
        let (archive, _) = try store.administration()
        guard let id = try KeyStoreOptions.key(named: key, in: archive) else { throw ExitCode(1) }
        let record = try KeyStoreOptions.attempt { () throws(StoreProblem) in
            try archive.record(id)
        }
        guard let record else {
            StandardError.write("\(key) is not stored; `portcullis keys list` shows all keys")
            throw ExitCode(1)
        }
        guard StandardOutput.write(KeyLine.text(record) + "\n") else { throw ExitCode(1) }
    }
}
