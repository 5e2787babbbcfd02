import ArgumentParser
import LoadGenerator

struct EnrolCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enrol",
        abstract: "Enrol a fleet through a gateway's endpoints, as fast as it allows.",
        discussion: """
            The app needs `environments: [test]` and the fleet's root as `test_root`. Each device \
            asks for a challenge, waits as long as the gateway says, and has its key attested by a \
            stand-in for Apple once it has one. The gateway admits 100 keys a second unless \
            `enrolment.rate` says otherwise; many keys are better imported.
            """
    )

    @OptionGroup var gateway: GatewayOptions
    @OptionGroup var way: ConnectOptions

    @Option(help: "Connections that enrol at once.", transform: LoadOptionText.number(1...1_000))
    var connections = 4

    func run() async throws {
        let server = try way.server(gateway.url)
        let enrolment = try FleetEnrolment(
            try gateway.pairing(),
            to: server,
            url: gateway.url,
            connections: connections
        )
        way.awaitGateway(server)
        let counts = try await enrolment.run { counts in
            guard DiagnosticOutput.isTerminal else { return }
            DiagnosticOutput.write(
                "enrolled \(counts.enrolled), told to wait \(counts.throttled), "
                    + "attested \(counts.attested)\n"
            )
        }
        print("enrolled: \(counts.enrolled), enrolled already: \(counts.known)")
        print("told to wait: \(counts.throttled), attestKey calls: \(counts.attested)")
    }
}
