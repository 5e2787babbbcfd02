import ArgumentParser
import Cryptography
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

    @OptionGroup var target: TargetOptions

    @Option(help: "Connections that enrol at once.")
    var connections = 4

    @Flag(help: "Phones show a token of Play Integrity, which the app's `integrity` asks for.")
    var tokens = false

    @Argument(help: "The fleet's file.")
    var fleet: String

    @Argument(help: "The gateway: http://HOST:PORT or https://…")
    var url: String

    func run() async throws {
        guard (1...1_000).contains(connections) else { throw LoadError("--connections: 1…1000") }
        let url = try TargetOptions.url(url)
        let server = try target.server(url)
        let run = try FleetEnrolment(
            try FleetFile.read(fleet),
            try target.configuration(),
            url: url,
            server: server,
            connections: connections,
            showsTokens: tokens,
            now: .current
        )
        try target.awaitGateway(server)
        let counts = try await run.run { counts in
            DiagnosticOutput.write(
                "enrolled \(counts.enrolled), told to wait \(counts.throttled), "
                    + "attested \(counts.attested)\n"
            )
        }
        print("enrolled: \(counts.enrolled), enrolled already: \(counts.known)")
        print("told to wait: \(counts.throttled), attestKey calls: \(counts.attested)")
    }
}
