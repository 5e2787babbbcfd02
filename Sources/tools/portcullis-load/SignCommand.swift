import ArgumentParser
import ConfigurationReading
import Cryptography
import LoadGenerator

struct SignCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign",
        abstract: "Sign one request, and print the fields that prove it.",
        discussion: """
            Prints a field a line, as `curl -H @FILE` reads them. Nothing is sent. The fleet's \
            file moves on to the next counter, so each call signs anew.
            """
    )

    @Option(help: "The gateway's configuration: what it asks of the request is read from it.")
    var config: String

    @Option(help: "The challenge that is signed.")
    var challenge: String?

    @Option(name: [.customShort("X"), .long], help: "The method. Default GET; with content POST.")
    var method: String?

    @Option(name: [.customShort("H"), .long], help: "A field, `name: value`; may be repeated.")
    var header: [String] = []

    @Option(name: .shortAndLong, help: "The content: a text, or @FILE.")
    var data: String?

    @Option(help: "The device that signs, from 0.")
    var device = 0

    @Flag(help: "A phone shows a token of Play Integrity, which the rule's `integrity` asks for.")
    var tokens = false

    @Argument(help: "The fleet's file.")
    var fleet: String

    @Argument(help: "Where the request goes: http://HOST:PORT/PATH or https://…")
    var url: String

    func run() async throws {
        let url = try TargetOptions.url(url)
        var fleetOnDisk = try FleetFile.read(fleet)
        let sketch = RequestSketch(
            method: method ?? (data == nil ? "GET" : "POST"),
            url: url.text,
            headers: try RunCommand.fields(header)
        )
        let signed = try SingleRequest(
            sketch,
            to: url,
            content: try content(),
            challenge: challenge,
            try TargetOptions.configuration(config),
            fleet: &fleetOnDisk,
            device: device,
            showsTokens: tokens,
            now: .current
        )
        // The file is written first: a counter that was shown must not be used again.
        try FleetFile.write(fleet, fleetOnDisk)
        for field in signed.fields { print("\(field.name): \(field.value)") }
    }

    private func content() throws(LoadError) -> [UInt8] {
        guard let data else { return [] }
        return data.hasPrefix("@") ? try TextFile.read(String(data.dropFirst())) : Array(data.utf8)
    }
}
