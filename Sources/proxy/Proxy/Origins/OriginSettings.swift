package import HTTPWire
package import Lanes
package import TLSSession

/// One origin: its servers, and how they are used.
package struct OriginSettings: Sendable {
    package let name: String
    package var servers: [OriginServerSettings]
    package var balance = Balance.roundRobin
    /// Milliseconds in which a server that came back gets its share step by step; 0 for at once.
    package var slowStart: UInt64 = 0
    package var ejection = Ejection()
    /// `nil` where servers are not checked.
    package var check: ServerCheck?
    /// Milliseconds from a request's first connect to the head of its response, over all tries.
    package var totalTimeout: UInt64 = .max
    package var retries = RetryRule()
    /// How requests wait while all servers have as many connections as they may.
    package let queue: QueueRule
    /// Shared by the lanes.
    package let state: OriginState
    /// What the origin gets as Host instead of what the client sent.
    package var host: [UInt8]?
    /// What it gets of the fields that are deleted by default.
    package var keptFields = KeptFields()
    /// What its servers get before the first request on a connection.
    package var preface = OriginPreface.none
    /// Milliseconds for a connect to a server. Then the next server, at last 504.
    package var connectTimeout: UInt64
    /// Milliseconds from the end of a request to the head of its response. Then 504.
    package var firstByteTimeout: UInt64

    package init(
        name: String,
        servers: [OriginServerSettings],
        connectTimeout: UInt64,
        firstByteTimeout: UInt64,
        queue: QueueRule = QueueRule(),
        state: OriginState = OriginState()
    ) {
        self.name = name
        self.servers = servers
        self.connectTimeout = connectTimeout
        self.firstByteTimeout = firstByteTimeout
        self.queue = queue
        self.state = state
        take()
    }

    /// Tells the state which servers it has.
    func take() {
        let limits = servers.compactMap { server in
            server.connectionsMax.map { (server.state.number, $0) }
        }
        state.take(
            servers.map(\.state),
            limits: Dictionary(limits) { first, _ in first },
            queueMax: queue.max
        )
    }
}

/// How a server is spoken to under TLS. Shared by the lanes.
package struct OriginTLS: Sendable {
    /// The authorities that are trusted, and what is shown to the server.
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

/// When a request may be sent to an origin once more, and how many of them at a time.
package struct RetryRule: Sendable {
    /// For one request.
    package var max = 0
    /// The most retries under way, in percent of the requests under way.
    package var share = 20
    /// Retries under way that are allowed in any case.
    package var minimum = 3

    package init() {}

    /// Whether one more may begin. A budget keeps retries from doubling the load of servers that
    /// fail because of their load.
    func allows(retrying: Int, active: Int) -> Bool {
        retrying < Swift.max(minimum, active * share / 100)
    }
}

/// How requests wait while all servers of an origin have as many connections as they may.
package struct QueueRule: Sendable {
    /// The most that wait; 0 for none.
    package var max = 1_000
    /// Milliseconds that one waits at most.
    package var timeout: UInt64 = 5_000

    package init() {}
}

/// The bounds of what a server may send.
package final class ResponseLimits: Sendable {
    /// Bounds of the head, and of the framing of content.
    package let head: HeadLimits
    /// Interim (1xx) responses to one request.
    package let interimMax: Int

    /// Those of a connection that carries no request.
    static let none = ResponseLimits(head: HeadLimits(), interimMax: 0)

    package init(head: HeadLimits, interimMax: Int) {
        self.head = head
        self.interimMax = interimMax
    }
}

/// How the servers of an origin share its requests.
package enum Balance: Sendable, Equatable {
    /// In turn, by weight. Each lane has turns of its own.
    case roundRobin
    /// The server with the fewest requests under way on all lanes, by weight.
    case leastRequests
    /// The same server for the same subject, as long as it is up.
    case hash(Subject)

    /// Whose requests go to the same server.
    package enum Subject: Sendable {
        /// A key that has proven the request; the client's address where none has.
        case key
        /// The client's address.
        case address
    }
}

/// When a server whose requests fail is passed over for a while.
package struct Ejection: Sendable {
    /// Failures one after another; 0 for never.
    package var failures = 5
    /// The statuses that are failures.
    package var statuses = [502, 503, 504]
    /// Milliseconds of the first ejection; it doubles with each one.
    package var time: UInt64 = 10_000
    /// The longest, and how long a server must go well to start over.
    package var timeMax: UInt64 = 300_000
    /// The most servers of an origin that are ejected at a time, in percent.
    package var share = 50

    package init() {}

    func isFailure(_ status: Int) -> Bool { status >= 400 && statuses.contains(status) }

    /// Whether one more of `count` servers may be ejected, when `ejected` are.
    func allows(ejected: Int, of count: Int) -> Bool { (ejected + 1) * 100 <= share * count }
}

/// Whose requests go to origins on a lane.
package protocol OriginHost: AnyObject {
    /// Where responses' heads are read.
    var heads: HeadScratch { get }
    /// Counts what happens on the way to a server.
    func note(_ event: OriginEvent)
}

/// One server of an origin.
package struct OriginServerSettings: Sendable {
    /// As the configuration writes it; for logs.
    package let name: String
    package let address: SocketAddress
    /// Its share of the requests, beside those of the other servers; 1 or more.
    package var weight = 1
    package var role = Role.primary
    /// The most connections of all lanes, with those that are idle; `nil` for no limit.
    package var connectionsMax: Int?
    /// `nil` for a server that is spoken to in the clear.
    package var tls: OriginTLS?
    /// Shared by the lanes.
    package let state: ServerState
    /// Tells servers apart for hashing: the same on all lanes, in all gateways, after a restart.
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
        // FNV-1a. The port stands in the name.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in Array(name.utf8) + address.octets {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
        }
        seed = Balancer.mixed(hash)
    }

    /// The same server with a state of its own, and without a limit of connections.
    var alone: OriginServerSettings {
        var alone = OriginServerSettings(name: name, address: address)
        alone.tls = tls
        return alone
    }

    /// Whether what is kept of one suits the other: the server is the same, and so is what it has
    /// to show.
    func suits(_ other: OriginServerSettings) -> Bool {
        state === other.state && tls?.context === other.tls?.context && tls?.name == other.tls?.name
            && (connectionsMax == nil) == (other.connectionsMax == nil)
    }
}
