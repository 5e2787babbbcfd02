package import HTTPWire
package import Rules
package import Verification

/// The settings of an event loop. They never change: a reload makes a new value, and requests under
/// way keep theirs.
package final class ProxySettings: Sendable {
    package let rules: RuleSet
    package let origins: [OriginSettings]
    package let timeouts: Timeouts
    package let limits: ProxyLimits
    package let options: Options
    /// The bounds of what origins' servers send.
    let responseLimits: ResponseLimits
    let addressRequests: TokenRate?
    /// Calls of the gateway's own endpoints by one address.
    let addressCalls: TokenRate?
    /// Verifications in vain that one address may cause.
    let addressFailures: TokenRate?

    /// What beside rules, origins, times and bounds is the same for all requests.
    package struct Options: Sendable {
        /// The peers whose Forwarded and X-Forwarded fields are trusted.
        package var trustedProxies: [IPNetwork] = []
        package var addressSource = ClientAddress.Source.xForwardedFor
        /// Whether origins get RFC 7239's Forwarded beside X-Forwarded-For, -Proto and -Host.
        package var writesForwarded = false
        package var traces = TraceRule.carry
        /// Which requests have spans; `nil` for none.
        package var tracing: SpanRecording?
        /// Whether the connections of HTTP/1.0 clients that ask for it are kept. Not where requests
        /// are forwarded: some of those clients keep a connection open that a proxy in between has
        /// taken for closed (RFC 9112 §9.3).
        var keepsOldClients = false
        /// Whether requests leave lines in the access log.
        package var logsAccess = false
        /// The format of the lines, and which requests have one.
        package var logRule = AccessLogRule()
        /// The folder for held content that is too large for memory.
        package var spillFolder = ""
        /// Asks Apple about devices; `nil` where no rule needs it.
        package var devices: (any DeviceChecking)?
        /// Check the tokens that rules name, in the order of the section `proofs`.
        package var tokenChecks: [any TokenChecker] = []
        /// Signs the verdicts for origins; `nil` where they are not signed.
        package var verdictSigner: VerdictSigner?

        package init() {}
    }

    package init(
        rules: RuleSet,
        origins: [OriginSettings],
        timeouts: Timeouts,
        limits: ProxyLimits,
        options: Options
    ) {
        self.rules = rules
        self.origins = origins
        self.timeouts = timeouts
        self.limits = limits
        self.options = options
        addressRequests = limits.addressRequests.map { TokenRate($0, burst: limits.addressBurst) }
        addressCalls = limits.addressCalls.map { TokenRate($0, burst: $0 * 2) }
        addressFailures = limits.addressFailures.map { TokenRate($0, perSeconds: 60, burst: $0) }
        responseLimits = ResponseLimits(
            head: limits.responseHead,
            interimMax: limits.interimResponsesMax
        )
    }

    func isTrusted(_ address: IPAddress) -> Bool {
        options.trustedProxies.contains { $0.contains(address) }
    }
}

/// The bounds of what is read and held: `limits`. Sizes are in bytes; what is of all requests or
/// all event loops says so, other counts are of one event loop.
package struct ProxyLimits: Hashable, Sendable {
    /// `head`, `target`, `trailers`, `fields`: the bounds of request heads, and of bodies' framing.
    /// More is answered 431; a longer target 414.
    package var requestHead = HeadLimits()
    /// `http2`: the bounds of HTTP/2 connections.
    package var http2 = HTTP2Limits()
    package var responseHead = HeadLimits()
    /// `connections`: client connections; one more is closed at once. Default 100000, 1…10000000.
    /// Of the requests that are under way at once on an HTTP/2 connection, each but the first
    /// counts as one, here and in `address_connections`.
    package var connectionsMax = 100_000
    /// `pooled`: idle connections to one server of an origin. Default 256, 0…100000.
    package var pooledMax = 256
    /// `interim_responses`: 1xx responses to one request. One more makes the response malformed.
    /// Default 16, 0…1000.
    package var interimResponsesMax = 16
    /// `held_memory`: bytes of held content in memory, of all requests; more goes into files.
    /// Default 64MiB, 1MiB…64GiB.
    package var heldMemoryMax = 64 << 20
    /// `held_disk`: bytes of held content in files of `spill_folder`, of all requests; more is
    /// answered 503. Default 1GiB, 0B…1TiB.
    package var heldDiskMax = 1 << 30
    /// `address_held`: bytes of held content, in memory and in files, of one client address; more
    /// is answered 429. Default 256MiB, 64KiB…1TiB: a fourth of `held_disk`, so that one address
    /// can't use it up. Where ``filesAreMemory``: a fourth of `held_memory`.
    package var addressHeldMax = 256 << 20
    /// `key_held`: the same of one key, whatever addresses its requests come from. Without a digest
    /// in the head nothing is verified yet, and the key is the one that the request names. Default
    /// that of `address_held`, same range.
    package var keyHeldMax = 256 << 20
    /// Whether `spill_folder` is in memory (tmpfs, ramfs). What its files hold then counts as
    /// `held_memory`, and `held_disk` bounds nothing.
    package var filesAreMemory = false
    /// `drain`: bytes that are read and discarded after an early answer. Default 64MiB, 0B…1GiB.
    package var drainBytesMax = 64 << 20
    /// `endpoint_body`: bytes of content for the gateway's own endpoints. Default 16KiB, 4KiB…1MiB.
    package var endpointBodyMax = 16 << 10
    /// `question_message`: bytes of the message by which another proxy asks over gRPC; it has the
    /// head and the content of the request. Messages count as `held_memory` until they are read.
    /// Default 2MiB, 64KiB…64MiB.
    package var questionMessageMax = 2 << 20
    /// `addresses`: client addresses that are distinguished, on all event loops, 60 bytes each.
    /// Default 65536, 1024…16777216.
    package var addressesMax = 65_536
    /// `address_connections`: connections of one address, on all event loops. Default 16384,
    /// 1…1000000 or `off`. High, since a mobile carrier puts thousands of phones behind one
    /// address.
    package var addressConnectionsMax: Int? = 16_384
    /// `address_requests`: requests a second of one address; more are answered 429. Default `off`,
    /// 1/s…1000000/s: no number is right for one phone and for a carrier's gateway.
    package var addressRequests: Int?
    /// `address_burst`: requests at once after a pause. Default 200, 1…1000000.
    package var addressBurst = 200
    /// `address_calls`: calls a second of the gateway's own endpoints by one address, twice as many
    /// at once; more are answered 429. Default 1000/s, 1/s…1000000/s or `off`.
    package var addressCalls: Int? = 1_000
    /// `address_failures`: verifications a minute that led to no admission; then proofs from the
    /// address are answered 429 without one. Default 6000/m, 1/m…1000000/m or `off`.
    package var addressFailures: Int? = 6_000

    package init() {}
}

/// How long the gateway waits, and for what, in milliseconds: `timeouts`. Each is 1ms…7d, or as
/// said.
package struct Timeouts: Hashable, Sendable {
    /// `handshake`: from the accept to the end of the TLS handshake and to the first byte of a
    /// request. Default 10s.
    package var handshake: UInt64 = 10_000
    /// `head`: from a request's first byte to the end of its head; then 408. Default 10s.
    package var head: UInt64 = 10_000
    /// `body_idle`: for the next byte of content while the origin takes them; then 408.
    /// Default 30s.
    package var bodyIdle: UInt64 = 30_000
    /// `body_minimum_rate`: bytes a second that content must bring, measured over `body_idle`;
    /// 0B/s for no minimum. Default 64B/s. Others: Kestrel 240, Apache 500.
    package var bodyMinimumRate: UInt64 = 64
    /// `connect`: for a connection to a server; then the next one, at last 504. Default 3s.
    package var connect: UInt64 = 3_000
    /// `first_byte`: from the end of a request to the head of its response; then 504. Default 60s.
    package var firstByte: UInt64 = 60_000
    /// `commit`: for the disk, where a request waits until its counter is on it; then as the rule's
    /// `on_error` says. Where an enrolment waits until its key is on it; then 503. Default 10s:
    /// longer than another process may hold up a transaction.
    package var commit: UInt64 = 10_000
    /// `response_idle`: for the next byte of a response, and for a party to take what waits for
    /// it. Default 60s.
    package var responseIdle: UInt64 = 60_000
    /// `response_minimum_rate`: bytes a second that a client must take of what waits for it,
    /// measured over `response_idle`; 0B/s for no minimum. Default 64B/s. Others: Kestrel 240.
    package var responseMinimumRate: UInt64 = 64
    /// `idle`: for the next request on a client's connection. Default 60s.
    package var idle: UInt64 = 60_000
    /// `pool_idle`: how long a connection to an origin waits unused; less than origins keep theirs.
    /// Default 50s.
    package var poolIdle: UInt64 = 50_000
    /// `tunnel_idle`: for the next byte of a tunnel (WebSocket), in either direction. Default 1h.
    package var tunnelIdle: UInt64 = 3_600_000
    /// `linger`: the longest silence of a client whose content is read and discarded after an
    /// answer that ends its connection, so that it sees the answer and no reset. Default 5s, as
    /// nginx's `lingering_timeout`.
    package var linger: UInt64 = 5_000
    /// `linger_total`: how long such content is read in all. Default 30s, as nginx's
    /// `lingering_time`.
    package var lingerTotal: UInt64 = 30_000
    /// `drain`: how long requests and tunnels under way may go on after the signal to stop.
    /// Default 30s.
    package var drain: UInt64 = 30_000
    /// `drain_idle`: how long, after the signal to stop, a client's connection still takes a
    /// request, and a client that has ended its own direction may wait for a response. Default 1s.
    package var drainIdle: UInt64 = 1_000
    /// `lame_duck`: how long, after the signal to stop, `/readyz` answers 503 while all is served
    /// as before; 0s…7d. Default 0s. Others: CoreDNS and NATS name it so.
    package var lameDuck: UInt64 = 0

    package init() {}

    /// Whether a client has taken too little in ``responseIdle``.
    ///
    /// - taken: bytes.
    func isTooLittle(taken: UInt64) -> Bool {
        taken == 0 || taken < responseMinimumRate * responseIdle / 1000
    }

    /// Whether a client has brought too little content in ``bodyIdle``.
    ///
    /// - brought: bytes.
    func isTooLittle(brought: UInt64) -> Bool {
        brought == 0 || brought < bodyMinimumRate * bodyIdle / 1000
    }
}

// The operators' listener.
extension ProxySettings {
    /// The settings of the operators' listener: no rules, no origins, no log.
    static func operators(_ timeouts: Timeouts, _ limits: ProxyLimits) -> ProxySettings {
        let nothing = Rule(id: "operators", index: 0, match: .all, origin: nil, mode: .deny)
        guard let rules = RuleSet([], default: nothing) else {
            preconditionFailure("ProxySettings: a default rule alone is a rule set")
        }
        var options = Options()
        options.keepsOldClients = true
        return ProxySettings(
            rules: rules,
            origins: [],
            timeouts: timeouts,
            limits: limits,
            options: options
        )
    }
}

extension Timeouts {
    /// The timeouts of the operators' listener: 30 s for the next request, 5 s for a head, and 10 s
    /// for a reader to take a byte. It has no minimum rate.
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
    /// KiB, targets of 1 KiB, 64 fields), and content of calls about devices (16 KiB). Addresses
    /// are not limited.
    package static var operators: ProxyLimits {
        var limits = ProxyLimits()
        limits.connectionsMax = 64
        limits.requestHead.headBytesMax = 8 << 10
        limits.requestHead.targetBytesMax = 1 << 10
        limits.requestHead.fieldsMax = 64
        limits.drainBytesMax = 64 << 10
        limits.endpointBodyMax = 16 << 10
        limits.addressConnectionsMax = nil
        limits.addressCalls = nil
        limits.addressFailures = nil
        return limits
    }
}
