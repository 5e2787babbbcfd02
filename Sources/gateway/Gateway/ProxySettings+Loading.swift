import ConfigurationReading
import HTTP2Wire
import HTTPWire
import Lanes
import Proxy
import Rules
import TLSSession
import Verification

extension ProxySettings {
    /// The configuration as the proxy takes it. Servers whose address is not known are left out.
    convenience init(
        _ configuration: GatewayConfiguration,
        _ servers: ServerBook,
        _ devices: any DeviceChecking,
        _ certificates: [TLSContext?],
        _ book: OriginBook
    ) {
        let timeouts = Timeouts(configuration.timeouts)
        let origins = zip(configuration.origins, certificates).map { origin, context in
            OriginSettings(origin, servers.addresses, context, book)
        }
        self.init(
            rules: configuration.rules,
            origins: origins,
            timeouts: timeouts,
            limits: ProxyLimits(configuration.limits),
            trustedProxies: configuration.trustedProxies,
            addressSource: configuration.addressSource,
            writesForwarded: configuration.addressSource == .forwarded,
            traces: configuration.traces,
            logsAccess: configuration.log.access != .off,
            logRule: AccessLogRule(configuration.log),
            spillFolder: configuration.spillFolder,
            devices: devices
        )
    }
}

extension OriginSettings {
    init(
        _ upstream: UpstreamSettings,
        _ known: [ServerAddress: [SocketAddress]],
        _ context: TLSContext?,
        _ book: OriginBook
    ) {
        let servers = upstream.servers.flatMap { server in
            (known[server.address] ?? []).map { address in
                let name = server.address.text
                let state = book.server(name, at: address, of: upstream.name)
                var settings = OriginServerSettings(server, at: address, state)
                if let context, let tls = upstream.tls {
                    settings.tls = OriginTLS(context, name: tls.name(of: server.address))
                }
                return settings
            }
        }
        self.init(
            name: upstream.name,
            servers: servers,
            connectTimeout: upstream.connectTimeout.milliseconds,
            firstByteTimeout: upstream.firstByteTimeout.milliseconds,
            queue: QueueRule(upstream.balancing.queue),
            state: book.origin(upstream.name)
        )
        let balancing = upstream.balancing
        balance = Balance(balancing.balance)
        slowStart = balancing.slowStart == .zero ? 0 : balancing.slowStart.milliseconds
        ejection = Ejection(balancing.ejection)
        totalTimeout = balancing.totalTimeout == .zero ? .max : balancing.totalTimeout.milliseconds
        retries.max = balancing.retries.max
        retries.share = balancing.retries.budget
        retries.minimum = balancing.retries.minimum
        check = balancing.check.map(ServerCheck.init)
        host = upstream.host.map { Array($0.utf8) }
        keptFields = KeptFields(upstream.keptFields)
        preface =
            switch upstream.proxyProtocol {
            case .off: .none
            case .v2: .proxyHeader
            }
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

extension QueueRule {
    fileprivate init(_ settings: QueueSettings) {
        self.init()
        max = settings.max
        timeout = settings.timeout.milliseconds
    }
}

extension Ejection {
    fileprivate init(_ settings: EjectionSettings) {
        self.init()
        failures = settings.failures
        statuses = settings.statuses
        time = settings.time.milliseconds
        timeMax = settings.timeMax.milliseconds
        share = settings.share
    }
}

extension ServerCheck {
    fileprivate init(_ settings: CheckSettings) {
        self.init()
        path = settings.path
        host = settings.host
        statuses = settings.statuses
        interval = settings.interval.milliseconds
        timeout = settings.timeout.milliseconds
        healthy = settings.healthy
        unhealthy = settings.unhealthy
    }
}

extension Balance {
    fileprivate init(_ balance: BalancingSettings.Balance) {
        switch balance {
        case .roundRobin: self = .roundRobin
        case .leastRequests: self = .leastRequests
        case .hashKey: self = .hash(.key)
        case .hashAddress: self = .hash(.address)
        }
    }
}

extension Timeouts {
    fileprivate init(_ settings: TimeoutSettings) {
        self.init()
        head = settings.head.milliseconds
        handshake = settings.handshake.milliseconds
        bodyIdle = settings.bodyIdle.milliseconds
        bodyMinimumRate = UInt64(settings.bodyMinimumRate.rawValue)
        connect = settings.connect.milliseconds
        commit = settings.commit.milliseconds
        firstByte = settings.firstByte.milliseconds
        responseIdle = settings.responseIdle.milliseconds
        responseMinimumRate = UInt64(settings.responseMinimumRate.rawValue)
        idle = settings.idle.milliseconds
        poolIdle = settings.poolIdle.milliseconds
        tunnelIdle = settings.tunnelIdle.milliseconds
        linger = settings.linger.milliseconds
        drainIdle = settings.drainIdle.milliseconds
    }
}

extension ProxyLimits {
    fileprivate init(_ settings: LimitSettings) {
        self.init()
        requestHead = settings.requestHead
        http2 = HTTP2Limits(settings.http2, head: settings.requestHead)
        connectionsMax = settings.connections
        pooledMax = settings.pooled
        interimResponsesMax = settings.interimResponses
        heldMemoryMax = settings.heldMemory.rawValue
        heldDiskMax = settings.heldDisk.rawValue
        addressHeldMax = settings.addressHeld.rawValue
        keyHeldMax = settings.keyHeld.rawValue
        filesAreMemory = settings.filesAreMemory
        drainBytesMax = settings.drain.rawValue
        endpointBodyMax = settings.endpointBody.rawValue
        addressConnectionsMax = settings.addressConnections
        addressRequests = settings.addressRequests.map {
            TokenRate($0, burst: settings.addressBurst)
        }
        addressCalls = settings.addressCalls.map { TokenRate($0, burst: $0 * 2) }
        addressFailures = settings.addressFailures.map {
            TokenRate($0, perSeconds: 60, burst: $0)
        }
    }
}

extension HTTP2Limits {
    fileprivate init(_ settings: HTTP2Settings, head: HeadLimits) {
        self.init()
        self.head = head
        streamsMax = settings.streams
        streamWindow = settings.streamWindow.rawValue
        connectionWindow = settings.connectionWindow.rawValue
        unsentBytesMax = settings.unsent.rawValue
        unsentTotalMax = settings.unsentTotal.rawValue
        continuationsMax = settings.continuations
        resets = settings.resets
        provokedResets = settings.provokedResets
        pings = settings.pings
        self.settings = settings.settings
        emptyFrames = settings.emptyFrames
        otherFrames = settings.otherFrames
    }
}

extension Duration {
    /// Whole milliseconds, at least 1.
    var milliseconds: UInt64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = UInt64(max(seconds, 0)).multipliedReportingOverflow(by: 1000)
        guard !overflow else { return .max }
        return max(whole &+ UInt64(max(attoseconds, 0) / 1_000_000_000_000_000), 1)
    }
}

extension AccessLogRule {
    fileprivate init(_ settings: LogSettings) {
        let form: Form =
            switch settings.format {
            case .json: .json
            case .combined: .combined
            }
        let time: Time =
            switch settings.time {
            case .milliseconds: .milliseconds
            case .iso8601: .iso8601
            }
        self.init(
            form,
            time: time,
            admittedShare: settings.sample.millionths,
            refusals: settings.addressRefusals.map { TokenRate($0, burst: $0 * 10) }
        )
    }
}
