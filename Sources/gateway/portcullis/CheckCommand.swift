import ArgumentParser
import ConfigurationReading
import Cryptography
import DeviceKey
import Encodings
import Foundation
import Gateway
import HTTPWire
import KeyStore
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
        // A unit checks before each start: its journal shows what is wrong by priority.
        let usual: LogPriority = check.exitStatus == 0 ? .notice : .error
        StandardOutput.write(Journal.text(check.text, as: usual, on: 1))
        if check.exitStatus != 0 { throw ExitCode(check.exitStatus) }
    }
}

struct DiffCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "List the endpoints that another configuration treats otherwise.",
        discussion: """
            Compares modes, rollouts, what requests must carry, apps and origins, rule by rule, \
            and which rule answers. Keys of other settings that differ follow, with what a \
            change needs. Orders of `portcullis rollout` beside NEW are listed, too.
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
        guard StandardOutput.write(difference.text), orders.problem?.severity != .error else {
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

struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Say which rule a request meets, why, and what the rule asks of it."
    )

    @Argument(help: "The configuration file.")
    var file: String

    @Argument(help: "The request's method.")
    var method: String

    @Argument(help: "The request's URL, or its path.")
    var url: String

    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: "A header field, `name: value`."
    )
    var headers: [String] = []

    @Option(
        help: ArgumentHelp(
            "The client's key: its key id in base64, or the short name that the log shows.",
            valueName: "key"
        )
    )
    var key: String?

    @Option(
        help:
            "The client's address, for rules with client and rollouts without a key id."
    )
    var client: String?

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        for header in headers where RequestSketch.header(header) == nil {
            throw ValidationError("-H \"\(header)\" has no colon; write it as \"name: value\".")
        }
        if let key { try KeyStoreOptions.checkName(key) }
        if let client, IPAddress(client) == nil {
            throw ValidationError("--client \(client) is no IP address.")
        }
    }

    func run() throws {
        let configuration = try LoadedFile.configuration(file)
        var sketch = RequestSketch(
            method: method,
            url: url,
            headers: headers.compactMap(RequestSketch.header)
        )
        let orders = RolloutFile.orders(of: configuration)
        if let problem = orders.problem { StandardError.write(problem.text) }
        sketch.key = try key.map { try keyID(named: $0, configuration) }
        sketch.client = client.flatMap { IPAddress($0) }
        let explanation = Explanation(
            sketch,
            configuration,
            orders: orders.orders,
            now: .current,
            lookUp: { lookUp($0, configuration) }
        )
        guard StandardOutput.write(json ? explanation.json : explanation.text),
            orders.problem?.severity != .error
        else { throw ExitCode(1) }
    }

    /// The key id for `--key`. A short name has to be looked up.
    private func keyID(named name: String, _ configuration: GatewayConfiguration) throws -> KeyID {
        if case .id(let keyID) = KeyName(name) { return keyID }
        guard let archive = try configuration.store.readableArchive() else {
            StandardError.write(
                "\(file) names no store in which the short name \(name) could be looked up; give "
                    + "the key id (44 characters)"
            )
            throw ExitCode(1)
        }
        let found = try KeyStoreOptions.key(named: name, in: archive, deleted: .included)
        guard let keyID = found else { throw ExitCode(1) }
        return keyID
    }

    private func lookUp(_ keyID: KeyID, _ configuration: GatewayConfiguration) -> KeyFinding {
        do throws(StoreProblem) {
            guard let archive = try configuration.store.readableArchive() else {
                return .notAsked("\(file) names no store")
            }
            let record = try archive.record(keyID)
            return record.map(KeyFinding.stored) ?? .notStored
        } catch {
            return .notAsked("\(error.path): \(error.detail)")
        }
    }
}

/// The configuration of a command: its argument, or `--config` as in the commands for a running
/// gateway.
struct ConfigurationFileOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("The configuration file.", valueName: "file"))
    var argument: String?

    @Option(name: .customLong("config"), help: "The configuration file, in place of the argument.")
    var option: String?

    /// Its path. ``validate()`` has found one.
    var path: String { argument ?? option ?? "" }

    func validate() throws {
        if argument == nil, option == nil {
            throw ValidationError("Missing expected argument '<file>'")
        }
        if argument != nil, option != nil {
            throw ValidationError("Name the configuration once: as the argument or with --config.")
        }
    }
}
