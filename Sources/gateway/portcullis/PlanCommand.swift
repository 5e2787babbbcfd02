import ArgumentParser
import ConfigurationReading
import Foundation
import Rules

struct PlanCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plan",
        abstract: "Write what requests have to sign, as JSON to ship with an app.",
        discussion: "It says nothing of modes, rollouts and apps."
    )

    @Argument(help: "The configuration file.")
    var file: String

    @Option(name: [.customShort("o"), .long], help: "The file to write; else standard output.")
    var output: String?

    func run() throws {
        let configuration = try LoadedFile.configuration(file)
        let plan = ClientPlan(configuration.rules, endpoints: configuration.endpointsPath)
        let json = plan.json
        guard let output else {
            StandardOutput.write(String(decoding: json, as: UTF8.self))
            return
        }
        do {
            // In one step: an app's build never reads half a plan.
            try Data(json).write(to: URL(fileURLWithPath: output), options: .atomic)
        } catch {
            StandardError.write("\(output) can't be written: \(error.localizedDescription)")
            throw ExitCode(1)
        }
    }
}
