import ArgumentParser
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

    @OptionGroup var gateway: GatewayOptions

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

    func run() async throws {
        var pairing = try gateway.pairing()
        let request = LoadPlan.Request(
            method: method ?? (data == nil ? "GET" : "POST"),
            url: gateway.url,
            fields: try header.map(LoadOptionText.field)
        )
        let signed = try SingleRequest(
            request,
            content: try content(),
            challenge: challenge,
            by: &pairing,
            device: device
        )
        // The file is written first: a counter that was shown must not be used again.
        try TextFile.write(gateway.fleet, pairing.fleet.text)
        for field in signed.fields { print("\(field.name): \(field.value)") }
    }

    private func content() throws(LoadError) -> [UInt8] {
        guard let data else { return [] }
        return data.hasPrefix("@") ? try TextFile.read(String(data.dropFirst())) : Array(data.utf8)
    }
}
