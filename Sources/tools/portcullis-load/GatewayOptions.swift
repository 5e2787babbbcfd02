import ArgumentParser
import ConfigurationReading
import EventLoops
import LoadGenerator

/// The fleet, and the gateway that judges its requests.
struct GatewayOptions: ParsableArguments {
    @Option(help: "The gateway's configuration: what it asks of the request is read from it.")
    var config: String

    @Flag(help: "Phones show a token of Play Integrity, which `integrity` of rule or app asks for.")
    var tokens = false

    @Argument(help: "The fleet's file.")
    var fleet: String

    @Argument(
        help: "Where requests go: http://HOST:PORT/PATH or https://…",
        transform: LoadOptionText.url
    )
    var url: LoadURL

    /// Reads both files; the configuration's problems go to standard error.
    func pairing() throws(LoadError) -> FleetPairing {
        let loaded = ConfigurationLoader.load(config)
        for problem in loaded.errors { DiagnosticOutput.write(problem.text + "\n") }
        guard let configuration = loaded.configuration else {
            throw LoadError("\(config): is refused; `portcullis check \(config)` says more")
        }
        let fleet = try FleetFile.read(fleet)
        return FleetPairing(fleet, configuration, showsTokens: tokens, now: .current)
    }
}

/// The way to the gateway.
struct ConnectOptions: ParsableArguments {
    @Option(help: "Connect to this address and not to the URL's host: IP:port or unix:/path.")
    var connect: String?

    @Option(help: "For https: a PEM file with the certificates to trust, and no others.")
    var ca: String?

    @Option(
        help: "How long to wait until the gateway takes connections, such as 10s.",
        transform: LoadOptionText.time
    )
    var wait: LoadTime?

    func server(
        _ url: LoadURL,
        speaking version: LoadVersion = .http1
    ) throws(LoadError) -> ServerPlace {
        var context: TLSContext?
        if url.isSecure {
            do throws(TLSContextError) {
                context = try TLSContext(
                    clientTrusting: ca.map { .file($0) } ?? .system,
                    terms: TLSTerms(
                        protocols: [version == .http1 ? TLSContext.http11 : TLSContext.http2]
                    )
                )
            } catch {
                throw LoadError("\(ca ?? "the system's certificates"): \(error)")
            }
        }
        guard let address = address(url) else {
            throw LoadError("\(connect ?? url.host): is no address")
        }
        return ServerPlace(address, tls: context, host: url.host, speaking: version)
    }

    private func address(_ url: LoadURL) -> SocketAddress? {
        if let connect, connect.hasPrefix("unix:") {
            return SocketAddress(unixPath: String(connect.dropFirst(5)))
        }
        let place = connect.map { LoadURL("http://\($0)/") } ?? url
        return place.flatMap { SocketAddress.resolve($0.host, port: $0.port).first }
    }

    /// Waits for the gateway where `--wait` says so.
    func awaitGateway(_ server: ServerPlace) {
        guard let wait else { return }
        server.awaitGateway(within: wait) {
            DiagnosticOutput.write("waiting at most \(wait) for the gateway\n")
        }
    }
}

/// Readers of the options' texts; each error says what is allowed.
enum LoadOptionText {
    static let time = reader("use a whole number and ms, s, m or h") { LoadTime($0) }
    static let mix = reader("use kind=share%, such as replayed=3%,tampered=2%") { Mix($0) }
    static let content = reader("use bytes, such as 200 or 100..2000") { ContentPlan($0) }
    static let platforms = reader("use apple, android or apple:3,android:1") { PlatformMix($0) }
    static let stage = reader("use TIME:RATE, such as 30s:100/s, 1m:100..500/s or 1m:..500/s") {
        LoadStage($0)
    }
    static let limits = reader("use name>value, such as p99>20ms,wrong>0,failed>3,2:p99>50ms") {
        RunLimits($0)
    }
    static let url = reader("use http://HOST[:PORT]/PATH or https://…") { LoadURL($0) }

    /// Throws `advice` for a text that `read` does not take.
    private static func reader<Value>(
        _ advice: String,
        _ read: @escaping @Sendable (String) -> Value?
    ) -> @Sendable (String) throws -> Value {
        { text in
            guard let value = read(text) else { throw LoadError(advice) }
            return value
        }
    }

    static func field(_ text: String) throws(LoadError) -> (name: String, value: String) {
        guard let field = RequestSketch.header(text), !field.name.isEmpty else {
            throw LoadError("--header \(text): use `name: value`")
        }
        return field
    }

    /// A number of a range.
    static func number<Number: LosslessStringConvertible & Comparable & Sendable>(
        _ range: ClosedRange<Number>
    ) -> @Sendable (String) throws -> Number {
        reader("\(range.lowerBound)…\(range.upperBound)") { text in
            Number(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }
}
