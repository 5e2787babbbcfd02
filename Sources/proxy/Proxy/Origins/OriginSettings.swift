package import EventLoops
package import HTTPWire

/// One origin: its servers, and how they are used.
package struct OriginSettings: Sendable {
    package let name: String
    package var servers: [OriginServerSettings]
    package var rules: OriginRules
    /// Shared by the event loops.
    package let state: OriginState
    /// The Host that the origin gets instead of the client's.
    package var host: [UInt8]?
    /// The fields that it gets although they are deleted by default.
    package var keptFields = KeptFields()
    /// The bytes that its servers get before the first request on a connection.
    package var preface = OriginPreface.none

    package init(
        name: String,
        servers: [OriginServerSettings],
        rules: OriginRules = OriginRules(),
        state: OriginState = OriginState()
    ) {
        self.name = name
        self.servers = servers
        self.rules = rules
        self.state = state
        take()
    }

    /// Gives the state its current servers.
    func take() {
        let limits = servers.compactMap { server in
            server.connectionsMax.map { (server.state.number, $0) }
        }
        state.take(
            servers.map(\.state),
            limits: Dictionary(limits) { first, _ in first },
            queueMax: rules.queue.max
        )
    }
}

/// The TLS settings for a server. Shared by the event loops.
package struct OriginTLS: Sendable {
    /// The trusted authorities, and the gateway's certificate for the server.
    package let context: TLSContext
    /// The name or address that the server's certificate must have; a name is sent as SNI.
    package let name: String
    let sessions = TLSResumption()

    package init(_ context: TLSContext, name: String) {
        self.context = context
        self.name = name
    }

    /// The client's end of a new connection.
    func session() throws(TLSFailure) -> TLSSession {
        try TLSSession(connecting: context, to: name, resuming: sessions)
    }
}

/// How the servers of an origin are used: the keys of an origin. Times are in milliseconds.
package struct OriginRules: Hashable, Sendable {
    /// `balance`: default round-robin.
    package var balance = Balance.roundRobin
    /// `slow_start`: in which a server that came back gets its share step by step; 0 for at once.
    /// Default 0s, 0s…1h.
    package var slowStart: UInt64 = 0
    /// `eject`.
    package var ejection = Ejection()
    /// `check`: `nil`, the default, where servers are not checked.
    package var check: ServerCheck?
    /// `resolve_interval`: from one look-up of the servers' names to the next. Default 30s, 1s…1d.
    package var resolveInterval: UInt64 = 30_000
    /// `total_timeout`: from the first connect for a request to the head of its response, over all
    /// tries; 0s (the default) for no limit beyond those of each try.
    package var totalTimeout: UInt64 = 0
    /// `retries`.
    package var retries = RetryRule()
    /// `queue`.
    package var queue = QueueRule()
    /// `http2_streams`: the most requests at once on an HTTP/2 connection; fewer where the server
    /// allows fewer. Default 100 (the least that RFC 9113 §6.5.2 recommends), 1…1000.
    package var http2Streams = 100
    /// `http2_connections`: the most HTTP/2 connections of an event loop to a server, for each
    /// ``SharingGroup``. Default 4, 1…100.
    package var http2Connections = 4
    /// `connect_timeout`: for a connect to a server; then the next server, at last 504. Default
    /// `timeouts.connect`.
    package var connectTimeout: UInt64 = 3_000
    /// `first_byte_timeout`: from the end of a request to the head of its response; then 504.
    /// Default `timeouts.first_byte`.
    package var firstByteTimeout: UInt64 = 60_000

    package init() {}
}

/// When a request may be sent to an origin once more, and how many of them at a time: `retries`.
package struct RetryRule: Hashable, Sendable {
    /// `max`: for one request, beside the connects. Default 0, 0…10: only a request that broke with
    /// an idle connection is sent once more.
    package var max = 0
    /// `budget`: the most retries under way, in percent of the origin's requests under way. Default
    /// 20 % (Envoy's).
    package var budget = 20
    /// `minimum`: retries under way that are allowed in any case. Default 3 (Envoy's), 0…10000.
    package var minimum = 3

    package init() {}

    /// Whether one more may begin. The budget prevents retries from doubling the load of servers
    /// that fail because of their load.
    func allows(retrying: Int, active: Int) -> Bool {
        retrying < Swift.max(minimum, active * budget / 100)
    }
}

/// How requests wait while all servers of an origin have `max_connections`: `queue`.
package struct QueueRule: Hashable, Sendable {
    /// `max`: the most that wait; 0 for none. Default 1000, 0…10000 (Envoy's
    /// `max_pending_requests` is 1024; HAProxy has no limit).
    package var max = 1_000
    /// `timeout`: milliseconds that one waits at most. Default 5s (HAProxy's is that of the
    /// connect).
    package var timeout: UInt64 = 5_000

    package init() {}
}

/// How an origin's servers are spoken to over HTTP/2.
package struct OriginHTTP2: Hashable, Sendable {
    /// The bounds of a connection.
    let limits: HTTP2Limits
    /// The most connections of an event loop to a server, for each ``SharingGroup``.
    let connectionsMax: Int

    /// - head: the limits of a response's head.
    package init(_ rules: OriginRules, head: HeadLimits) {
        var limits = HTTP2Limits()
        limits.head = head
        limits.streamsMax = rules.http2Streams
        self.limits = limits
        connectionsMax = rules.http2Connections
    }
}

/// The limits on what a server may send.
package final class ResponseLimits: Sendable {
    /// Limits of the head, and of the framing of content.
    package let head: HeadLimits
    /// The most interim (1xx) responses to one request.
    package let interimMax: Int

    /// The limits of a connection that carries no request.
    static let none = ResponseLimits(head: HeadLimits(), interimMax: 0)

    package init(head: HeadLimits, interimMax: Int) {
        self.head = head
        self.interimMax = interimMax
    }
}

/// How the servers of an origin share its requests.
package enum Balance: String, CaseIterable, Sendable {
    /// In turn, by weight. Each event loop has turns of its own.
    case roundRobin = "round-robin"
    /// The server with the fewest requests under way on all event loops, by weight.
    case leastRequests = "least-requests"
    /// The same server for the same key, as long as it is up; by the client's address where no key
    /// has proven the request.
    case hashKey = "hash-key"
    /// The same server for the same client address, as long as it is up.
    case hashAddress = "hash-address"
}

/// When a server whose requests fail is passed over for a while: `eject`.
package struct Ejection: Hashable, Sendable {
    /// `failures`: one after another; 0 for never. Default 5, 0…1000 (Envoy has 5, too).
    package var failures = 5
    /// `statuses`: those that are failures, of 400…599. Default 502, 503, 504.
    package var statuses = [502, 503, 504]
    /// `time`: milliseconds of the first ejection; it doubles with each one. Default 10s (nginx has
    /// 10s).
    package var time: UInt64 = 10_000
    /// `time_max`: the longest, and how long a server must go well to start over. Default 5m (as
    /// Envoy's).
    package var timeMax: UInt64 = 300_000
    /// `share`: the most servers of an origin that are ejected at a time, in percent. Default 50 %.
    package var share = 50

    package init() {}

    func isFailure(_ status: Int) -> Bool { status >= 400 && statuses.contains(status) }

    /// Whether one more of `count` servers may be ejected, when `ejected` are.
    func allows(ejected: Int, of count: Int) -> Bool { (ejected + 1) * 100 <= share * count }
}

/// One server of an origin.
package struct OriginServerSettings: Sendable {
    /// The name in the configuration's spelling; for logs.
    package let name: String
    package let address: SocketAddress
    /// Its share of the requests, relative to the other servers; 1 or more.
    package var weight = 1
    package var role = Role.primary
    /// The most connections of all event loops, idle ones included; `nil` for no limit.
    package var connectionsMax: Int?
    /// `nil` for a server without TLS.
    package var tls: OriginTLS?
    /// `http2`: `nil` for a server that is spoken to in HTTP/1.1.
    package var http2: OriginHTTP2?
    /// Shared by the event loops.
    package let state: ServerState
    /// Distinguishes servers for hashing: the same on all event loops, in all gateways, after a
    /// restart.
    let seed: UInt64

    /// When a server gets requests.
    package enum Role: Sendable {
        case primary
        /// Only while no primary server is up.
        case backup
    }

    package init(name: String, address: SocketAddress, state: ServerState = ServerState()) {
        self.name = name
        self.address = address
        self.state = state
        // FNV-1a. The name includes the port.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in Array(name.utf8) + address.bytes {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
        }
        seed = Balancer.mixed(hash)
    }

    /// This server with a state of its own, and without a limit of connections.
    var alone: OriginServerSettings {
        var alone = OriginServerSettings(name: name, address: address)
        alone.tls = tls
        alone.http2 = http2
        return alone
    }

    /// Whether connections of one suit the other: the server and the gateway's certificate are the
    /// same.
    func suits(_ other: OriginServerSettings) -> Bool {
        state === other.state && tls?.context === other.tls?.context && tls?.name == other.tls?.name
            && http2 == other.http2 && (connectionsMax == nil) == (other.connectionsMax == nil)
    }
}

/// What an origin's server gets at the beginning of a connection, before TLS: `proxy_protocol`.
package enum OriginPreface: String, CaseIterable, Sendable {
    /// Nothing.
    case none = "off"
    /// A PROXY header of version 2, which names the client.
    ///
    /// The header holds for the whole connection. So a connection carries requests of one client
    /// alone: it is used again only for requests whose header would be the same, the client's port
    /// included, by which an origin's log tells clients behind one address apart.
    case proxyHeader = "v2"

    /// Both ends of the client's connection.
    typealias Ends = (source: ProxyHeader.End, destination: ProxyHeader.End)

    /// The bytes for a client. Without `ends`, the bytes for connections of the gateway's own.
    func bytes(_ ends: Ends?) -> [UInt8] {
        switch self {
        case .none: return []
        case .proxyHeader:
            var bytes: [UInt8] = []
            ProxyHeader.append(ends, to: &bytes)
            return bytes
        }
    }
}
