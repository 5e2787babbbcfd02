import ArgumentParser
import ConfigurationReading
import Cryptography
import DeviceKey
import Gateway
import HTTPWire
import KeyStore

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

    @Option(help: "The client's address, for rollouts of requests without a key id.")
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
        let sketch = RequestSketch(
            method: method,
            url: url,
            headers: headers.compactMap(RequestSketch.header)
        )
        let orders = RolloutFile.orders(of: configuration)
        if let problem = orders.problem { StandardError.write(problem.text) }
        let explanation = Explanation(
            sketch,
            configuration,
            orders: orders.orders,
            key: try key.map { try keyID(named: $0, configuration) },
            client: client.flatMap { IPAddress($0) },
            now: .current,
            lookUp: { lookUp($0, configuration) }
        )
        guard StandardOutput.write(json ? explanation.json : explanation.text),
            orders.problem == nil
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
