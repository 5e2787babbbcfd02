import ArgumentParser
import ConfigurationReading
import EventLoops
import LoadGenerator

/// The gateway, and its demands.
struct TargetOptions: ParsableArguments {
    @Option(help: "The gateway's configuration: what it asks of the request is read from it.")
    var config: String

    @Option(help: "Connect to this address and not to the URL's host: IP:port or unix:/path.")
    var connect: String?

    @Option(help: "For https: a PEM file with the certificates to trust, and no others.")
    var ca: String?

    @Option(help: "How long to wait until the gateway takes connections, such as 10s.")
    var wait: String?

    /// Waits for the gateway where `--wait` says so.
    func awaitGateway(_ server: ServerPlace) throws(LoadError) {
        guard let wait else { return }
        guard let time = LoadTime(wait) else {
            throw LoadError("--wait \(wait): use a whole number and ms, s, m or h")
        }
        server.awaitGateway(within: time) {
            StandardError.write("waiting at most \(wait) for the gateway\n")
        }
    }

    func configuration() throws(LoadError) -> GatewayConfiguration {
        try Self.configuration(config)
    }

    /// Reads a configuration; its problems go to standard error.
    static func configuration(_ config: String) throws(LoadError) -> GatewayConfiguration {
        let loaded = ConfigurationLoader.load(config)
        for problem in loaded.errors { StandardError.write(problem.text + "\n") }
        guard let configuration = loaded.configuration else {
            throw LoadError("\(config): is refused; `portcullis check \(config)` says more")
        }
        return configuration
    }

    static func url(_ text: String) throws(LoadError) -> LoadURL {
        guard let url = LoadURL(text) else {
            throw LoadError("\(text): use http://HOST[:PORT]/PATH or https://…")
        }
        return url
    }

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
        guard let connect else { return SocketAddress.resolve(url.host, port: url.port).first }
        if connect.hasPrefix("unix:") {
            return SocketAddress(unixPath: String(connect.dropFirst(5)))
        }
        guard let place = LoadURL("http://\(connect)/") else { return nil }
        return SocketAddress.resolve(place.host, port: place.port).first
    }
}
