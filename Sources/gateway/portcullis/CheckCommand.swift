import ArgumentParser
import ConfigurationReading
import Gateway

struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Say everything that is wrong with a configuration, or what it means."
    )

    @Argument(help: "The configuration file.")
    var file: String

    func run() throws {
        let check = Check(Preparation.load(file), file: file)
        StandardOutput.write(check.text)
        if check.exitStatus != 0 { throw ExitCode(check.exitStatus) }
    }
}
