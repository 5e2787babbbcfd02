import ArgumentParser
import ConfigurationReading
import Gateway
import SQLiteKeyStore

struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Say everything that is wrong with a configuration, or what it means."
    )

    @Argument(help: "The configuration file.")
    var file: String

    @Flag(help: "Accept a key store that `serve --accept-older-store` accepts.")
    var acceptOlderStore = false

    func run() throws {
        let age: StoreAge.Demand = acceptOlderStore ? .any : .newest
        let check = Check(Preparation.load(file, age: age), file: file)
        StandardOutput.write(check.text)
        if check.exitStatus != 0 { throw ExitCode(check.exitStatus) }
    }
}
