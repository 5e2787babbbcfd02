import ArgumentParser
import LoadGenerator
import Signatures
import Verification

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Send requests, and judge every answer.",
        discussion: """
            With --rate or --stage the loop is open: requests are due at an even beat, and \
            latency counts from the moment at which one was due. Without them each connection \
            sends when it was answered.

            Exit status: 0 when every request was answered as expected and no limit of --fail-if \
            is exceeded, 1 when not, 2 for wrong usage or a gateway that is not there.
            """
    )

    @OptionGroup var gateway: GatewayOptions
    @OptionGroup var way: ConnectOptions

    @OptionGroup var pace: PacingOptions

    @Option(
        name: .shortAndLong,
        help: "Connections, kept alive.",
        transform: LoadOptionText.number(1...100_000)
    )
    var connections = 64

    @Flag(help: "Speak HTTP/2: in the clear with prior knowledge, under TLS by ALPN.")
    var http2 = false

    @Option(
        help: "With --http2: requests of one connection under way at once. Default 1.",
        transform: LoadOptionText.number(1...1_000)
    )
    var streams: Int?

    @Option(help: "Event loops, each a core's work.", transform: LoadOptionText.number(1...256))
    var eventLoops = 1

    @Option(
        help: "Shares that are not good: missing, replayed, tampered, stale, unknown.",
        transform: LoadOptionText.mix
    )
    var mix: Mix?

    @Flag(help: "Sign before the clock starts; else each request is signed when it is due.")
    var signBefore = false

    @Flag(help: "Open a session for each device, and sign good requests with it.")
    var sessions = false

    @Option(name: [.customShort("X"), .long], help: "The method.")
    var method = "GET"

    @Option(name: [.customShort("H"), .long], help: "A field, `name: value`; may be repeated.")
    var header: [String] = []

    @Option(help: "Bytes of content, such as 200 or 100..2000.", transform: LoadOptionText.content)
    var content: ContentPlan?

    @Flag(help: "Send content in the chunked coding.")
    var chunked = false

    @Option(
        help: "Under a window: requests of one device under way at once.",
        transform: LoadOptionText.number(1...64)
    )
    var underWay: Int?

    @Option(help: "How long an answer may take.", transform: LoadOptionText.time)
    var timeout = LoadTime.seconds(30)

    @OptionGroup var output: ReportOptions

    func run() async throws {
        Cost.raiseFileLimit()
        let pacing = try pace.pacing()
        try output.check(pacing)
        let style = try output.style()
        let server = try way.server(gateway.url, speaking: try version())
        let fields = try header.map(LoadOptionText.field)
        var request = LoadPlan.Request(method: method, url: gateway.url, fields: fields)
        request.content = content ?? .none
        request.content.isChunked = chunked
        let pairing = try gateway.pairing()
        let plan = try LoadPlan(request, from: pairing, to: server, options: options(pacing))
        for warning in plan.warnings { DiagnosticOutput.write("warning: \(warning)\n") }
        way.awaitGateway(server)
        // A run that breaks off has used counters that are not recorded.
        var fleet = pairing.fleet
        fleet.nextCounter += DeviceFleet.counterReserve
        try TextFile.write(gateway.fleet, fleet.text)
        let progress = Progress(style) { DiagnosticOutput.write($0) }
        let startedAt = UnixTime.current
        let summary: Summary
        do throws(LoadError) {
            summary = try await Campaign.run(plan, progress: progress)
        } catch {
            // No request was sent.
            try TextFile.write(gateway.fleet, pairing.fleet.text)
            throw error
        }
        fleet.nextCounter = summary.endCounter
        try TextFile.write(gateway.fleet, fleet.text)
        print(summary.text, terminator: "")
        let exceeded = try output.write(summary, startedAt: startedAt)
        if output.failIf != nil { for limit in exceeded { print("limit       \(limit)") } }
        if !exceeded.isEmpty { throw ExitCode(1) }
    }

    private func version() throws(LoadError) -> LoadVersion {
        guard http2 else {
            guard streams == nil else { throw LoadError("--streams is for --http2") }
            return .http1
        }
        // RFC 9113 §8.1: HTTP/2 has no Transfer-Encoding.
        guard !chunked else { throw LoadError("--chunked is for HTTP/1.1: not with --http2") }
        return .http2(streams: streams ?? 1)
    }

    private func options(_ pacing: Pacing) -> LoadPlan.Options {
        var options = LoadPlan.Options(pacing: pacing)
        (options.connections, options.loops) = (connections, eventLoops)
        (options.mix, options.isSignedBefore) = (mix ?? .allGood, signBefore)
        options.proof = sessions ? .session : .assertion
        options.underWayMax = underWay
        options.responseTimeout = timeout.nanoseconds / 1_000_000
        return options
    }
}
