import ArgumentParser
import ConfigurationReading
import Cryptography

struct TestCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test",
        abstract: "Compare what a configuration makes of requests with what is expected."
    )

    @Argument(help: "The configuration file.")
    var file: String

    @Argument(help: "The file of cases.")
    var cases: String

    func run() throws {
        let test = RouteTest(cases, try LoadedFile.configuration(file), now: .current)
        StandardOutput.write(test.text)
        if test.exitStatus != 0 { throw ExitCode(test.exitStatus) }
    }
}
