package import HTTP2Wire
package import HTTPWire
package import Rules
package import Verification

/// Everything that a lane is told and never changes: a reload makes a new value, and requests under
/// way keep theirs.
package final class ProxySettings: Sendable {
    package let rules: RuleSet
    package let origins: [OriginSettings]
    package let timeouts: Timeouts
    package let limits: ProxyLimits
    /// Whose Forwarded and X-Forwarded fields are believed.
    package let trustedProxies: [IPNetwork]
    package let addressSource: ClientAddress.Source
    /// Whether origins get RFC 7239's Forwarded beside X-Forwarded-For, -Proto and -Host.
    package let writesForwarded: Bool
    let traces: TraceRule
    /// The same bounds as client connections and origins' streams take them.
    let clientLimits: ClientLimits
    let responseLimits: ResponseLimits
    /// Whether requests leave lines in the access log.
    package let logsAccess: Bool
    /// How, and which requests.
    let logRule: AccessLogRule
    /// Who asks Apple about devices; `nil` where no rule does.
    let devices: (any DeviceChecking)?
    /// Where held content goes that is too large for memory.
    package let spillFolder: String

    package init(
        rules: RuleSet,
        origins: [OriginSettings],
        timeouts: Timeouts,
        limits: ProxyLimits,
        trustedProxies: [IPNetwork],
        addressSource: ClientAddress.Source,
        writesForwarded: Bool,
        traces: TraceRule = .carry,
        keepsOldClients: Bool = false,
        logsAccess: Bool,
        logRule: AccessLogRule = AccessLogRule(),
        spillFolder: String,
        devices: (any DeviceChecking)? = nil
    ) {
        self.rules = rules
        self.origins = origins
        self.timeouts = timeouts
        self.limits = limits
        self.trustedProxies = trustedProxies
        self.addressSource = addressSource
        self.writesForwarded = writesForwarded
        self.traces = traces
        self.logsAccess = logsAccess
        self.logRule = logRule
        self.spillFolder = spillFolder
        self.devices = devices
        clientLimits = ClientLimits(
            head: limits.requestHead,
            http2: limits.http2,
            handshakeTime: timeouts.handshake,
            headTime: timeouts.head,
            idleTime: timeouts.idle,
            drainIdleTime: timeouts.drainIdle,
            contentTime: timeouts.bodyIdle,
            contentRate: timeouts.bodyMinimumRate,
            outputTime: timeouts.responseIdle,
            outputRate: timeouts.responseMinimumRate,
            lingerTime: timeouts.linger,
            lingerBytesMax: limits.drainBytesMax,
            keepsOldClients: keepsOldClients
        )
        responseLimits = ResponseLimits(
            head: limits.responseHead,
            interimMax: limits.interimResponsesMax
        )
    }

    func isTrusted(_ address: IPAddress) -> Bool {
        trustedProxies.contains { $0.contains(address) }
    }
}

/// The bounds of what one lane holds. Each value has a configuration key of the same name.
package struct ProxyLimits: Sendable {
    /// Bounds of request heads and bodies' framing.
    package var requestHead = HeadLimits()
    /// Bounds of HTTP/2 connections.
    package var http2 = HTTP2Limits()
    /// Bounds of what origins send as heads.
    package var responseHead = HeadLimits()
    /// Client connections on one lane; one more is closed at once.
    package var connectionsMax = 100_000
    /// Idle connections kept to one server of an origin.
    package var pooledMax = 256
    /// Interim (1xx) responses to one request. One more makes the response malformed.
    package var interimResponsesMax = 16
    /// Bytes of held content in memory, all requests of all lanes together; more is put in files.
    package var heldMemoryMax = 64 << 20
    /// Bytes of held content in files, all requests of all lanes together; more is refused.
    package var heldDiskMax = 1 << 30
    /// Bytes of held content of one address, in memory and in files; more is refused.
    package var addressHeldMax = 256 << 20
    /// The same of one key.
    package var keyHeldMax = 256 << 20
    /// Whether files of held content are in memory, and count as it.
    package var filesAreMemory = false
    /// Bytes that are read away after an early answer before the connection is closed.
    package var drainBytesMax = 256 << 10
    /// Bytes of content the gateway's own endpoints read.
    package var endpointBodyMax = 16 << 10
    /// Client connections of one address on all lanes; one more is closed at once.
    package var addressConnectionsMax: Int?
    /// Requests of one address.
    package var addressRequests: TokenRate?
    /// Calls of the gateway's own endpoints by one address.
    package var addressCalls: TokenRate?
    /// Verifications in vain that one address may cause.
    package var addressFailures: TokenRate?

    package init() {}
}

/// How long the proxy waits, in milliseconds. Each value has a configuration key of the same name.
package struct Timeouts: Sendable {
    /// From the accept to the end of the TLS handshake and to the first byte of a request.
    package var handshake: UInt64 = 10_000
    /// From a request's first byte to the end of its head. Then 408.
    package var head: UInt64 = 10_000
    /// For the next byte of request content while the origin takes them. Then 408.
    package var bodyIdle: UInt64 = 30_000
    /// Bytes a second that request content must bring, measured over `bodyIdle`; 0 for no minimum.
    package var bodyMinimumRate: UInt64 = 64
    /// For a connect to an origin. Then the next server, at last 504.
    package var connect: UInt64 = 3_000
    /// From the end of a request to the head of its response. Then 504.
    package var firstByte: UInt64 = 60_000
    /// For a commit that a request waits for, or an enrolment. Then the store counts as failed.
    package var commit: UInt64 = 10_000
    /// For the next byte of a response, and for a client or origin to take what waits for it.
    package var responseIdle: UInt64 = 60_000
    /// Bytes a second that a client must take of what waits for it, measured over `responseIdle`;
    /// 0 for no minimum.
    package var responseMinimumRate: UInt64 = 64
    /// For the next request on a client's connection. Then it is closed.
    package var idle: UInt64 = 60_000
    /// How long an origin connection waits in the pool: less than origins keep theirs.
    package var poolIdle: UInt64 = 50_000
    /// For the next byte of a tunnel, in either direction.
    package var tunnelIdle: UInt64 = 3_600_000
    /// After an answer that ends a connection: how long what the client still sends is read away,
    /// so that it sees the answer and no reset.
    package var linger: UInt64 = 2_000
    /// While the gateway ends: for the next request on a client's connection, and for a client that
    /// has ended its direction to take its response. Then it is closed.
    package var drainIdle: UInt64 = 1_000

    package init() {}
}

// The operators' listener.
extension ProxySettings {
    /// Those of the operators' listener: no rules, no origins, no log.
    static func operators(_ timeouts: Timeouts, _ limits: ProxyLimits) -> ProxySettings {
        let nothing = Rule(id: "operators", index: 0, match: .all, origin: nil, mode: .deny)
        guard let rules = RuleSet([], default: nothing) else {
            preconditionFailure("ProxySettings: a default rule alone is a rule set")
        }
        return ProxySettings(
            rules: rules,
            origins: [],
            timeouts: timeouts,
            limits: limits,
            trustedProxies: [],
            addressSource: .xForwardedFor,
            writesForwarded: false,
            keepsOldClients: true,
            logsAccess: false,
            spillFolder: ""
        )
    }
}

extension Timeouts {
    /// Those of the operators' listener: 30 s for the next request, 5 s for a head, and 10 s for a
    /// reader to take a byte, however slowly.
    package static var operators: Timeouts {
        var timeouts = Timeouts()
        timeouts.handshake = 30_000
        timeouts.idle = 30_000
        timeouts.head = 5_000
        timeouts.responseIdle = 10_000
        timeouts.responseMinimumRate = 0
        return timeouts
    }
}

extension ProxyLimits {
    /// Those of the operators' listener: 64 connections, heads of probes, scrapers and browsers (8
    /// KiB, targets of 1 KiB, 64 fields), and content of calls about devices (16 KiB).
    package static var operators: ProxyLimits {
        var limits = ProxyLimits()
        limits.connectionsMax = 64
        limits.requestHead.headBytesMax = 8 << 10
        limits.requestHead.targetBytesMax = 1 << 10
        limits.requestHead.fieldsMax = 64
        limits.drainBytesMax = 64 << 10
        limits.endpointBodyMax = 16 << 10
        return limits
    }
}
