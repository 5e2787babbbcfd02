import ArgumentParser
import ConfigurationReading
import Cryptography
import Encodings
import Foundation
import Gateway
import Rules
import SQLiteKeyStore

struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Say everything that is wrong with a configuration, or what it means."
    )

    @OptionGroup var place: ConfigurationFileOptions

    @Flag(help: "Accept a key store that `serve --accept-older-store` accepts.")
    var acceptOlderStore = false

    private var file: String { place.path }

    func run() throws {
        let age: StoreAge.Demand = acceptOlderStore ? .any : .newest
        let check = Check(Preparation.load(file, age: age, asksDatabase: true), file: file)
        StandardOutput.write(check.text)
        if check.exitStatus != 0 { throw ExitCode(check.exitStatus) }
    }
}

struct DiffCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "List the endpoints that another configuration treats otherwise.",
        discussion: """
            Compares modes, rollouts, what requests must carry, apps and origins, rule by rule, \
            and which rule answers. What `portcullis rollout` has ordered beside NEW is told, too.
            """
    )

    @Argument(help: "The configuration as it is.")
    var old: String

    @Argument(help: "The configuration as it is to be.")
    var new: String

    func run() throws {
        let (before, after) = (try LoadedFile.configuration(old), try LoadedFile.configuration(new))
        let orders = RolloutFile.orders(of: after)
        if let problem = orders.problem { StandardError.write(problem.text) }
        let difference = ConfigurationDifference(from: before, to: after, orders: orders.orders)
        guard StandardOutput.write(difference.text), orders.problem == nil else {
            throw ExitCode(1)
        }
    }
}

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

struct PlanCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plan",
        abstract: "Write what requests have to sign, as JSON to ship with an app.",
        discussion: "It says nothing of modes, rollouts and apps."
    )

    @OptionGroup var place: ConfigurationFileOptions

    @Option(name: [.customShort("o"), .long], help: "The file to write; else standard output.")
    var output: String?

    private var file: String { place.path }

    func run() throws {
        let configuration = try LoadedFile.configuration(file)
        let plan = ClientPlan(configuration.rules, endpoints: configuration.endpointsPath)
        let json = plan.json
        guard let output else {
            guard StandardOutput.write(String(decoding: json, as: UTF8.self)) else {
                throw ExitCode(1)
            }
            return
        }
        do {
            // In one step, so that an app's build never reads half a plan.
            try Data(json).write(to: URL(fileURLWithPath: output), options: .atomic)
        } catch {
            StandardError.write("\(output) can't be written: \(error.localizedDescription)")
            throw ExitCode(1)
        }
    }
}

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
