import ArgumentParser
import ConfigurationReading
import Cryptography
import HTTPWire

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

    @Option(help: "The client's address, for rollouts of requests without a key id.")
    var client: String?

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        for header in headers where RequestSketch.header(header) == nil {
            throw ValidationError("-H \"\(header)\" has no colon; write it as \"name: value\".")
        }
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
        let explanation = Explanation(
            sketch,
            configuration,
            client: client.flatMap { IPAddress($0) },
            now: .current
        )
        StandardOutput.write(json ? explanation.json : explanation.text)
    }
}
