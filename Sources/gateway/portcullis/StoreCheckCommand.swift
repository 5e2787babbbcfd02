import ArgumentParser
import SQLiteKeyStore

struct StoreCheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Look for what is wrong with the store or a copy of it, and change nothing.",
        discussion: """
            Reads everything: damage, the version of the tables, each key, the log of counters, \
            the generation, permissions, the room on the disk. Exits 1 when there is a problem.
            """
    )

    @Option(
        name: .customLong("config"),
        help: "The gateway's configuration file; it names the store."
    )
    var configuration: String?

    @Argument(help: "A copy to look at in place of the store.")
    var file: String?

    func validate() throws {
        guard (configuration == nil) != (file == nil) else {
            throw ValidationError("Name a copy, or the configuration with --config.")
        }
    }

    func run() throws {
        let examination: StoreExamination
        if let file {
            examination = StoreExamination(of: file, as: .copy)
        } else {
            let path = try KeyStoreOptions.path(configuration ?? "")
            examination = StoreExamination(of: path, as: .store)
        }
        for finding in examination.findings {
            StandardOutput.write("\(finding.weight.rawValue): \(finding.text)\n")
        }
        if !examination.isGood { throw ExitCode(1) }
    }
}
