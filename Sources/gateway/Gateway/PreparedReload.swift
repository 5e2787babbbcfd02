import ConfigurationReading
import EventLoops
import HTTPWire
import Proxy
import Rules
import Verification

/// The loaded files of a configuration: all that a reload replaces.
///
/// It reads files and looks up names, so it is made on a queue where waiting is allowed.
struct PreparedReload: Sendable {
    let configuration: GatewayConfiguration
    let settings: ProxySettings
    let servers: ServerRegistry
    let warnings: [Problem]
    let certificates: LoadedCertificates
    /// The stamps of the certificates' files, from before they were read.
    let stamps: CertificateWatch.Stamps
    /// The writer of the access log; `nil` for no log.
    let accessLog: LogWriter?

    /// Makes it from the read files, while `current` is served.
    ///
    /// - Throws: when a setting has changed that is read only at the start, when this machine lacks
    ///   a requirement, or when the access log can't be opened, in this order.
    init(
        _ next: GatewayConfiguration,
        replacing current: GatewayConfiguration,
        _ file: String,
        _ known: ServerRegistry,
        _ tls: TLSSurroundings,
        _ resolver: Resolver,
        _ parties: RequestParties,
        _ registry: OriginRegistry,
        _ outputs: LogOutputs
    ) throws(GatewayError) {
        let changes = current.changes(to: next).filter { $0.needs > .reload }
        if let fixed = changes.first {
            throw GatewayError(
                "\(fixed.keyPath) has changed, which needs a restart",
                hint: changes.allSatisfy { current.isTakenByUpgrade($0, next) }
                    ? "`portcullis upgrade --config \(file)` takes it without an interruption, or "
                        + "restart the gateway, or take the change back."
                    : "Restart the gateway, or take the change back."
            )
        }
        configuration = next
        stamps = LoadedCertificates.stamps(of: next)
        let preparation = try Preparation.complete(next, store: .open, tls: tls, file: file)
        // Before the settings: these begin to fetch keys, which only an accepted reload ends.
        accessLog = try outputs.accessLog(next.log.access)
        servers = ServerRegistry(next, resolver, knowing: known.addresses)
        let contexts = preparation.certificates.origins
        settings = ProxySettings(next, servers, parties, contexts, registry)
        warnings = preparation.warnings + servers.problems(next)
        // The addresses and the order of the listeners stay. The new certificates are for
        // connections from now on.
        certificates = preparation.certificates
    }
}

extension GatewayConfiguration {
    /// Whether a new process can take over a change from a running one.
    fileprivate func isTakenByUpgrade(_ change: SettingChange, _ next: Self) -> Bool {
        guard change.needs < .restart else { return false }
        // Each event loop has sockets. Without the loop, no connection on them would be accepted.
        return change.keyPath != "event_loops"
            || GatewayServer.count(next.loops) >= GatewayServer.count(settings.loops)
    }
}

extension ProxySettings {
    /// The configuration in the proxy's form. Servers without a known address are omitted.
    convenience init(
        _ configuration: GatewayConfiguration,
        _ servers: ServerRegistry,
        _ parties: RequestParties,
        _ certificates: [TLSContext?],
        _ registry: OriginRegistry
    ) {
        let origins = zip(configuration.origins, certificates).map { origin, context in
            OriginSettings(origin, servers.addresses, context, registry, configuration.limits)
        }
        var options = ProxySettings.Options()
        options.trustedProxies = configuration.trustedProxies
        options.addressSource = configuration.addressSource
        options.writesForwarded = configuration.addressSource == .forwarded
        options.traces = configuration.traces
        options.logsAccess = configuration.log.access != .off
        options.logRule = configuration.log.lines
        options.spillFolder = configuration.spillFolder
        options.devices = parties.devices
        options.tokenChecks = parties.proofs.checkers(of: configuration)
        options.verdictSigner = configuration.verdictSigner
        self.init(
            rules: configuration.rules,
            origins: origins,
            timeouts: configuration.timeouts,
            limits: configuration.limits,
            options: options
        )
    }
}

/// The parties that requests ask.
struct RequestParties: Sendable {
    let devices: DeviceCheckClient
    let proofs: ProofChecks
    /// Makes the calls to all other parties.
    let https: HTTPSCalls
}

extension OriginSettings {
    init(
        _ upstream: UpstreamSettings,
        _ known: [ServerAddress: [SocketAddress]],
        _ context: TLSContext?,
        _ registry: OriginRegistry,
        _ limits: ProxyLimits
    ) {
        let http2: OriginHTTP2? =
            switch upstream.http2 {
            case .off: nil
            case .on: OriginHTTP2(upstream.rules, head: limits.responseHead)
            }
        let servers = upstream.servers.flatMap { server in
            (known[server.address] ?? []).map { address in
                let name = server.address.text
                let state = registry.server(name, at: address, of: upstream.name)
                var settings = OriginServerSettings(server, at: address, state)
                settings.http2 = http2
                if let context, let tls = upstream.tls {
                    settings.tls = OriginTLS(context, name: tls.name(of: server.address))
                }
                return settings
            }
        }
        self.init(
            name: upstream.name,
            servers: servers,
            rules: upstream.rules,
            state: registry.origin(upstream.name)
        )
        host = upstream.host.map { Array($0.utf8) }
        keptFields = KeptFields(upstream.keptFields)
        preface = upstream.preface
    }
}

extension OriginServerSettings {
    fileprivate init(_ server: ServerSettings, at address: SocketAddress, _ state: ServerState) {
        self.init(name: server.address.text, address: address, state: state)
        weight = server.weight
        role = server.isBackup ? .backup : .primary
        connectionsMax = server.connectionsMax == 0 ? nil : server.connectionsMax
    }
}

extension GatewayConfiguration {
    /// `nil` where verdicts are not signed.
    var verdictSigner: VerdictSigner? {
        settings.verdict.map { verdict in
            VerdictSigner(
                verdict.key,
                verdict.claims,
                origins: settings.origins.map {
                    VerdictSigner.Origin($0.name, audience: $0.audience)
                },
                build: GatewayServer.version
            )
        }
    }
}
