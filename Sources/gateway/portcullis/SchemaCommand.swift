import ArgumentParser
import ConfigurationReading
import JSONText

struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Print the JSON Schema of configurations and files of rules.",
        discussion: """
            Editors complete keys and mark mistakes by it. `check` knows more: it is what decides.
            """
    )

    func run() throws {
        guard StandardOutput.write(ConfigurationSchema().json.pretty + "\n") else {
            throw ExitCode(1)
        }
    }
}
