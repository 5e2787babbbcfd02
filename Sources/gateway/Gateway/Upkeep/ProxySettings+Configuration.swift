import ConfigurationReading
import EventLoops
import HTTPWire
import Parties
import Proxy
import Rules
import Telemetry
import Verification

extension ProxySettings {
    /// The configuration in the proxy's form. Servers without a known address are omitted.
    convenience init(
        _ configuration: GatewayConfiguration,
        _ servers: ServerRegistry,
        calls: OutsideCalls,
        certificates: [TLSContext?],
        registry: OriginRegistry
    ) {
        var options = ProxySettings.Options()
        options.trustedProxies = configuration.trustedProxies
        options.addressSource = configuration.addressSource
        options.writesForwarded = configuration.addressSource == .forwarded
        options.traces = configuration.traces
        options.tracing = calls.tracing.recording(configuration.tracing)
        options.logsAccess = configuration.log.access != .off
        options.logRule = configuration.log.lines
        options.spillFolder = configuration.spillFolder
        options.devices = calls.parties.devices
        options.tokenChecks = calls.parties.proofs.checkers(
            of: configuration.proofs.map(\.settings),
            configuration.apps
        )
        options.verdictSigner = configuration.verdictSigner
        self.init(
            rules: configuration.rules,
            origins: configuration.originSettings(
                servers,
                certificates: certificates,
                registry: registry
            ),
            timeouts: configuration.timeouts,
            limits: configuration.limits,
            options: options
        )
    }
}

extension OriginSettings {
    fileprivate init(
        _ upstream: UpstreamSettings,
        _ known: [ServerAddress: [SocketAddress]],
        context: TLSContext?,
        registry: OriginRegistry,
        limits: ProxyLimits
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
    /// The origins in the proxy's form, in their order. Servers without a known address are
    /// omitted.
    ///
    /// - certificates: those for each origin; `nil` where it is not spoken to under TLS.
    func originSettings(
        _ servers: ServerRegistry,
        certificates: [TLSContext?],
        registry: OriginRegistry
    ) -> [OriginSettings] {
        zip(settings.origins, certificates).map { origin, context in
            OriginSettings(
                origin,
                servers.addresses,
                context: context,
                registry: registry,
                limits: settings.limits
            )
        }
    }

    /// `nil` where verdicts are not signed.
    var verdictSigner: VerdictSigner? {
        settings.verdict.flatMap { verdict in
            guard let key = verdict.key else { return nil }
            return VerdictSigner(
                key,
                verdict.claims,
                origins: settings.origins.map {
                    VerdictSigner.Origin($0.name, audience: $0.audience)
                },
                build: ProgramVersion.text
            )
        }
    }
}
