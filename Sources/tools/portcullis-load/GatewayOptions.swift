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

    func server(_ url: LoadURL) throws(LoadError) -> ServerPlace {
        var context: TLSContext?
        if url.isSecure {
            do throws(TLSContextError) {
                context = try TLSContext(clientTrusting: ca.map { .file($0) } ?? .system)
            } catch {
                throw LoadError("\(ca ?? "the system's certificates"): \(error)")
            }
        }
        guard let address = address(url) else {
            throw LoadError("\(connect ?? url.host): is no address")
        }
        return ServerPlace(address, tls: context, host: url.host)
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
    @Sendable static func time(_ text: String) throws(LoadError) -> LoadTime {
        guard let time = LoadTime(text) else {
            throw LoadError("use a whole number and ms, s, m or h")
        }
        return time
    }

    @Sendable static func mix(_ text: String) throws(LoadError) -> Mix {
        guard let mix = Mix(text) else {
            throw LoadError("use kind=share%, such as replayed=3%,tampered=2%")
        }
        return mix
    }

    @Sendable static func content(_ text: String) throws(LoadError) -> ContentPlan {
        guard let plan = ContentPlan(text) else {
            throw LoadError("use bytes, such as 200 or 100..2000")
        }
        return plan
    }

    @Sendable static func platforms(_ text: String) throws(LoadError) -> PlatformMix {
        guard let mix = PlatformMix(text) else {
            throw LoadError("use apple, android or apple:3,android:1")
        }
        return mix
    }

    @Sendable static func limits(_ text: String) throws(LoadError) -> RunLimits {
        guard let limits = RunLimits(text) else {
            throw LoadError("use name>value, such as p99>20ms,wrong>0,failed>3")
        }
        return limits
    }

    @Sendable static func url(_ text: String) throws(LoadError) -> LoadURL {
        guard let url = LoadURL(text) else {
            throw LoadError("use http://HOST[:PORT]/PATH or https://…")
        }
        return url
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
        { text in
            guard let number = Number(text), range.contains(number) else {
                throw LoadError("\(range.lowerBound)…\(range.upperBound)")
            }
            return number
        }
    }
}
