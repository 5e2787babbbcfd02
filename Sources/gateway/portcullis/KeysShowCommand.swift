import ArgumentParser
import KeyCatalog

struct KeysShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "What is stored of a key, as JSON.",
        discussion: "Of the receipt it prints the size; --json has all of it."
    )

    @OptionGroup var store: KeyStoreOptions

    @Flag(help: "Print all of it in one line, as `keys export` writes it.")
    var json = false

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
        let text = json ? KeyLine.text(record) : KeyLine.pretty(record)
        guard StandardOutput.write(text + "\n") else { throw ExitCode(1) }
    }
}
