import ArgumentParser
import LoadGenerator
import Verification

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Send requests, and judge every answer.",
        discussion: """
            With --rate the loop is open: requests are due at an even beat, and latency counts \
            from the moment at which one was due. Without it each connection sends when it was \
            answered.

            Exit status: 0 when every request was answered as expected and no limit of --fail-if \
            is exceeded, 1 when not, 2 for wrong usage or a gateway that is not there.
            """
    )

    @OptionGroup var gateway: GatewayOptions
    @OptionGroup var way: ConnectOptions

    // A slower beat is beyond what nanoseconds can count.
    @Option(
        help: "Requests a second, over all connections; without it a closed loop.",
        transform: LoadOptionText.number(0.001...10_000_000)
    )
    var rate: Double?

    @Option(
        help: "How long: 30s, 5m, 1h. Default 10s unless --count is given.",
        transform: LoadOptionText.time
    )
    var duration: LoadTime?

    @Option(help: "At most so many requests.")
    var count: UInt64?

    @Option(
        help: "A warm-up time: its requests are checked but not measured.",
        transform: LoadOptionText.time
    )
    var warmUp = LoadTime.seconds(0)

    @Option(
        name: .shortAndLong,
        help: "Connections, kept alive.",
        transform: LoadOptionText.number(1...100_000)
    )
    var connections = 64

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

    @Option(
        help: "The run fails above these: 'p99>20ms,wrong>0'; also failed, replays, backlog.",
        transform: LoadOptionText.limits
    )
    var failIf: RunLimits?

    @Option(help: "Write the summary as JSON to this file.")
    var json: String?

    @Option(help: "Write the latencies to this file, as a percentile distribution of HdrHistogram.")
    var hgrm: String?

    func run() async throws {
        Cost.raiseFileLimit()
        let server = try way.server(gateway.url)
        let fields = try header.map(LoadOptionText.field)
        var request = LoadPlan.Request(method: method, url: gateway.url, fields: fields)
        request.content = content ?? .none
        request.content.isChunked = chunked
        let pairing = try gateway.pairing()
        let plan = try LoadPlan(request, from: pairing, to: server, options: options)
        for warning in plan.warnings { DiagnosticOutput.write("warning: \(warning)\n") }
        way.awaitGateway(server)
        // A run that breaks off has used counters that are not recorded.
        var fleet = pairing.fleet
        fleet.nextCounter += DeviceFleet.counterReserve
        try TextFile.write(gateway.fleet, fleet.text)
        let progress = Progress(isTerminal: DiagnosticOutput.isTerminal) {
            DiagnosticOutput.write($0)
        }
        let summary: Summary
        do throws(LoadError) {
            summary = try await Campaign.run(plan, progress: progress)
        } catch {
            // No request was sent.
            try TextFile.write(gateway.fleet, pairing.fleet.text)
            throw error
        }
        progress.end()
        fleet.nextCounter = summary.endCounter
        try TextFile.write(gateway.fleet, fleet.text)
        print(summary.text, terminator: "")
        if let json { try TextFile.write(json, summary.json) }
        if let hgrm { try TextFile.write(hgrm, summary.percentileDistribution) }
        let exceeded = (failIf ?? .standard).exceeded(by: summary)
        if failIf != nil { for limit in exceeded { print("limit       \(limit)") } }
        if !exceeded.isEmpty { throw ExitCode(1) }
    }

    private var options: LoadPlan.Options {
        let length = duration ?? (count == nil ? .seconds(10) : nil)
        let pacing = Pacing(
            rate: rate,
            countLimit: count,
            duration: length?.nanoseconds,
            warmUp: warmUp.nanoseconds
        )
        var options = LoadPlan.Options(pacing: pacing)
        (options.connections, options.loops) = (connections, eventLoops)
        (options.mix, options.isSignedBefore) = (mix ?? .allGood, signBefore)
        options.proof = sessions ? .session : .assertion
        options.underWayMax = underWay
        options.responseTimeout = timeout.nanoseconds / 1_000_000
        return options
    }
}
