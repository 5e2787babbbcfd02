import ArgumentParser
import ConfigurationReading
import Cryptography
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

            Exit status: 0 when every request was answered as expected, 1 when not, 2 for wrong \
            usage or a gateway that is not there.
            """
    )

    @OptionGroup var target: TargetOptions

    @Option(help: "Requests a second, over all connections; without it a closed loop.")
    var rate: Double?

    @Option(help: "How long: 30s, 5m, 1h. Default 10s unless --count is given.")
    var duration: String?

    @Option(help: "At most so many requests.")
    var count: UInt64?

    @Option(help: "A warm-up time: its requests are checked but not measured.")
    var warmUp = "0s"

    @Option(name: .shortAndLong, help: "Connections, kept alive.")
    var connections = 64

    @Option(help: "Event loops, each a core's work.")
    var eventLoops = 1

    @Option(help: "Shares that are not good: missing, replayed, tampered, stale, unknown.")
    var mix: String?

    @Flag(help: "Sign before the clock starts; else each request is signed when it is due.")
    var signBefore = false

    @Flag(help: "Open a session for each device, and sign good requests with it.")
    var sessions = false

    @Flag(help: "Phones show a token of Play Integrity, which the rule's `integrity` asks for.")
    var tokens = false

    @Option(name: [.customShort("X"), .long], help: "The method.")
    var method = "GET"

    @Option(name: [.customShort("H"), .long], help: "A field, `name: value`; may be repeated.")
    var header: [String] = []

    @Option(help: "Bytes of content, such as 200 or 100..2000.")
    var content: String?

    @Flag(help: "Send content in the chunked coding.")
    var chunked = false

    @Option(help: "Under a window: requests of one device under way at once.")
    var underWay: Int?

    @Option(help: "How long an answer may take.")
    var timeout = "30s"

    @Option(help: "Write the summary as JSON to this file.")
    var json: String?

    @Option(help: "Write the latencies to this file, as a percentile distribution of HdrHistogram.")
    var hgrm: String?

    @Argument(help: "The fleet's file.")
    var fleet: String

    @Argument(help: "Where requests go: http://HOST:PORT/PATH or https://…")
    var url: String

    func run() async throws {
        Cost.raiseFileLimit()
        let url = try TargetOptions.url(url)
        var fleetOnDisk = try FleetFile.read(fleet)
        let server = try target.server(url)
        let plan = try LoadPlan(
            try request(url),
            try target.configuration(),
            server: server,
            fleet: fleetOnDisk,
            options: try options(),
            now: .current
        )
        for warning in plan.warnings { DiagnosticOutput.write("warning: \(warning)\n") }
        try target.awaitGateway(server)
        // A run that breaks off has used counters that are not recorded.
        let before = fleetOnDisk
        fleetOnDisk.nextCounter += DeviceFleet.counterReserve
        try FleetFile.write(fleet, fleetOnDisk)
        let progress = Progress(isTerminal: DiagnosticOutput.isTerminal) {
            DiagnosticOutput.write($0)
        }
        let summary: Summary
        do throws(LoadError) {
            summary = try await Campaign.run(plan, progress: progress)
        } catch {
            // No request was sent.
            try FleetFile.write(fleet, before)
            throw error
        }
        progress.end()
        fleetOnDisk.nextCounter = summary.endCounter
        try FleetFile.write(fleet, fleetOnDisk)
        print(summary.text, terminator: "")
        if let json { try TextFile.write(json, summary.json) }
        if let hgrm { try TextFile.write(hgrm, summary.percentileDistribution) }
        if !summary.isAsExpected { throw ExitCode(1) }
    }

    private func request(_ url: LoadURL) throws(LoadError) -> LoadPlan.Request {
        let fields = try Self.fields(header)
        var plan = ContentPlan.none
        if let content {
            guard let given = ContentPlan(content, isChunked: chunked) else {
                throw LoadError("--content \(content): use bytes, such as 200 or 100..2000")
            }
            plan = given
        }
        return LoadPlan.Request(method: method, url: url, fields: fields, content: plan)
    }

    /// The fields that `--header` gives.
    static func fields(_ lines: [String]) throws(LoadError) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        for line in lines {
            guard let field = RequestSketch.header(line), !field.name.isEmpty else {
                throw LoadError("--header \(line): use `name: value`")
            }
            fields.append(field)
        }
        return fields
    }

    private func options() throws(LoadError) -> LoadPlan.Options {
        // A slower beat is beyond what nanoseconds can count.
        if let rate, !(0.001...10_000_000).contains(rate) {
            throw LoadError("--rate: 0.001…10000000")
        }
        guard (1...100_000).contains(connections) else {
            throw LoadError("--connections: 1…100000")
        }
        guard (1...256).contains(eventLoops) else { throw LoadError("--event-loops: 1…256") }
        if let underWay, !(1...64).contains(underWay) { throw LoadError("--under-way: 1…64") }
        let length = duration ?? (count == nil ? "10s" : nil)
        var nanoseconds: UInt64?
        if let length { nanoseconds = try Self.nanoseconds("--duration", length) }
        var options = LoadPlan.Options(
            pacing: Pacing(
                rate: rate,
                countLimit: count,
                duration: nanoseconds,
                warmUp: try Self.nanoseconds("--warm-up", warmUp)
            )
        )
        options.connections = connections
        options.loops = eventLoops
        options.isSignedBefore = signBefore
        options.proof = sessions ? .session : .assertion
        options.showsTokens = tokens
        options.underWayMax = underWay
        options.responseTimeout = try Self.nanoseconds("--timeout", timeout) / 1_000_000
        if let mix {
            guard let given = Mix(mix) else {
                throw LoadError("--mix \(mix): use kind=share%, such as replayed=3%,tampered=2%")
            }
            options.mix = given
        }
        return options
    }

    private static func nanoseconds(_ option: String, _ text: String) throws(LoadError) -> UInt64 {
        guard let time = LoadTime(text) else {
            throw LoadError("\(option) \(text): use a whole number and ms, s, m or h")
        }
        return time.nanoseconds
    }
}
