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

    @OptionGroup var absence: OfflineOptions

    @Flag(help: "Print JSON, for scripts.")
    var json = false

    private var file: String { place.path }

    func run() throws {
        let age: StoreAge.Demand = acceptOlderStore ? .any : .newest
        let loaded =
            absence.offline
            ? Preparation.loadOffline(file, age: age)
            : Preparation.load(file, age: age, asksDatabase: true)
        let check = Check(loaded, file: file)
        // A unit checks before each start: its journal shows what is wrong by priority.
        let usual: LogPriority = check.exitStatus == 0 ? .notice : .error
        StandardOutput.write(json ? check.json : Journal.text(check.text, as: usual, on: 1))
        try ExitStatus(isYes: check.exitStatus == 0).finish()
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

    @OptionGroup var absence: OfflineOptions

    @Flag(help: "Print JSON, for scripts.")
    var json = false

    func run() throws {
        let (before, after) = (try absence.load(old, json), try absence.load(new, json))
        let orders = absence.orders(of: after.configuration)
        if let problem = orders.problem { StandardError.write(problem.text) }
        let difference = ConfigurationDifference(
            from: before.configuration,
            to: after.configuration,
            orders: orders.orders
        )
        let assumptions = before.assumptions + after.assumptions
        let text = json ? difference.json(assuming: assumptions) : difference.text
        let isWritten = StandardOutput.write(text)
        if !json { OfflineOptions.name(assumptions) }
        try ExitStatus(isYes: isWritten && orders.problem?.severity != .error).finish()
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
            throw ExitStatus.no
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

    @OptionGroup var absence: OfflineOptions

    private var file: String { place.path }

    func run() throws {
        let loaded = try absence.load(file)
        defer { OfflineOptions.name(loaded.assumptions) }
        let configuration = loaded.configuration
        let plan = ClientPlan(configuration.rules, endpoints: configuration.endpointsPath)
        let json = plan.json
        guard let output else {
            guard StandardOutput.write(String(decoding: json, as: UTF8.self)) else {
                throw ExitStatus.no
            }
            return
        }
        do {
            // In one step, so that an app's build never reads half a plan.
            try Data(json).write(to: URL(fileURLWithPath: output), options: .atomic)
        } catch {
            StandardError.write("\(output) can't be written: \(error.localizedDescription)")
            throw ExitStatus.no
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

    @OptionGroup var absence: OfflineOptions

    @Flag(help: "Print JSON, for scripts.")
    var json = false

    func run() throws {
        let loaded = try absence.load(file, json)
        let test = RouteTest(cases, loaded.configuration, now: .current)
        StandardOutput.write(json ? test.json(assuming: loaded.assumptions) : test.text)
        if !json { OfflineOptions.name(loaded.assumptions) }
        try (ExitStatus(rawValue: test.exitStatus) ?? .no).finish()
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

    @OptionGroup var absence: OfflineOptions

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
        let loaded = try absence.load(file)
        defer { OfflineOptions.name(loaded.assumptions) }
        let configuration = loaded.configuration
        var sketch = RequestSketch(
            method: method,
            url: url,
            headers: headers.compactMap(RequestSketch.header)
        )
        let orders = absence.orders(of: configuration)
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
        else { throw ExitStatus.no }
    }

    /// The key id for `--key`. A short name has to be looked up.
    private func keyID(named name: String, _ configuration: GatewayConfiguration) throws -> KeyID {
        if case .id(let keyID) = KeyName(name) { return keyID }
        guard !absence.asksNoStore(of: configuration) else {
            StandardError.write(
                "with --offline no short name is looked up in a database; give the key id (44 "
                    + "characters)"
            )
            throw ExitStatus.no
        }
        guard let archive = try configuration.store.readableArchive() else {
            StandardError.write(
                "\(file) names no store in which the short name \(name) could be looked up; give "
                    + "the key id (44 characters)"
            )
            throw ExitStatus.no
        }
        let found = try KeyStoreOptions.key(named: name, in: archive, deleted: .included)
        guard let keyID = found else { throw ExitStatus.no }
        return keyID
    }

    private func lookUp(_ keyID: KeyID, _ configuration: GatewayConfiguration) -> KeyFinding {
        guard !absence.asksNoStore(of: configuration) else {
            return .notAsked("--offline asks no database")
        }
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
