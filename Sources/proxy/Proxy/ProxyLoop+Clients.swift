package import EventLoops
package import HTTPWire
import Services
import Telemetry
package import Verification

// Clients' connections, from the accept to the end.
extension ProxyLoop {
    /// The protocol of a listener's connections.
    package struct Entrance {
        /// `nil` without TLS.
        let tls: TLSContext?
        let takesHTTP2: Bool
        /// How their requests ask for decisions; `nil` where they go to origins.
        let decides: DecisionQuestion?

        package init(tls: TLSContext?, takesHTTP2: Bool, decides: DecisionQuestion? = nil) {
            self.tls = tls
            self.takesHTTP2 = takesHTTP2
            self.decides = decides
        }
    }

    package func accept(_ descriptor: Int32, _ peer: SocketAddress, _ entrance: Entrance) {
        loop.preconditionOnQueue()
        tally.add(.connectionsAccepted)
        guard hasPlace else {
            tally.add(.connectionsRefused)
            return Connection.discard(descriptor)
        }
        let source = peer.ipAddress
        let address = ownAddress(source, isUnix: peer.isUnix)
        let entry: AddressEntry?
        switch address.map({ hold($0, max: settings.limits.addressConnectionsMax) }) ?? .noRoom {
        case .held(let held): entry = held
        case .noRoom: entry = nil
        case .refused:
            tally.add(.addressConnectionsRefused)
            return Connection.discard(descriptor)
        }
        let client: HTTP1Connection
        do {
            let session = try entrance.tls.map { try TLSSession(accepting: $0) }
            let facts = ClientPeer(
                address: source,
                isUnix: peer.isUnix,
                isSecure: session != nil,
                decides: entrance.decides,
                entry: entry,
                provenance: provenance(of: source, isSecure: session != nil),
                settingsNumber: settingsNumber
            )
            client = HTTP1Connection(
                descriptor,
                peer,
                tls: session,
                client: facts,
                takesHTTP2: entrance.takesHTTP2,
                host: self,
                on: loop
            )
            client.flow = address.map(flow) ?? Self.flow(UInt64(descriptor))
            try loop.register(client)
        } catch {
            tally.add(.connectionsRefused)
            entry?.release(now: MonotonicClock.nanoseconds)
            return Connection.discard(descriptor)
        }
        connections.clients[ObjectIdentifier(client)] = client
        client.begin()
    }

    /// Whether there is room for one more connection, or for one more concurrent request.
    private var hasPlace: Bool {
        connections.count + connections.placeCount < settings.limits.connectionsMax
    }

    /// The peer's address, where it is the client's. A trusted proxy names the client's address
    /// with each request. The peer of a Unix socket has no address.
    private func ownAddress(_ address: IPAddress, isUnix: Bool) -> IPAddress? {
        isUnix || settings.isTrusted(address) ? nil : address
    }

    /// The flow in which the clients at an address are scheduled. If a client has no address of its
    /// own, its connection has its own flow.
    func flow(of address: IPAddress) -> Int { Self.flow(addresses.hash(of: address)) }

    static func flow(_ hash: UInt64) -> Int { 1 + Int(hash % UInt64(EventLoop.flowCount - 1)) }

    /// Holds a client's address.
    func hold(_ address: IPAddress, max: Int?) -> AddressTable.Holding {
        let holding = addresses.hold(address, now: MonotonicClock.nanoseconds, max: max)
        if case .noRoom = holding { tally.add(.addressTableFull) }
        return holding
    }

    /// Another connection object continues a connection.
    func replaced(_ connection: any ClientConnection, by successor: any ClientConnection) {
        connections.clients[ObjectIdentifier(connection)] = nil
        connections.clients[ObjectIdentifier(successor)] = successor
    }

    func connectionClosed(_ connection: any ClientConnection) {
        connection.client.entry?.release(now: MonotonicClock.nanoseconds)
        connections.clients[ObjectIdentifier(connection)] = nil
        tally.add(.connectionsClosed)
    }
}

// The event loop's services for client connections.
extension ProxyLoop {
    /// The owner that serves the request of a stream. ``ClientStreamOwner/begin(_:fault:)`` follows
    /// with the same head.
    func owner(
        for stream: any ClientStream,
        _ bytes: Span<UInt8>,
        fault: Malformed.Reason?
    ) -> any ClientStreamOwner {
        guard fault == nil else { return Exchange(self, for: stream, .malformed) }
        let form = stream.peer.decides?.form
        if form == .extAuthzGRPC, stream.spoken == .http2, stream.peer.isTrusted,
            CheckCall.isAsked(by: heads.request, bytes)
        {
            return CheckCall(self, for: stream)
        }
        let isPooled = settings.limits.pooledMax > 0
        let facts = RequestFacts(heads.request, bytes, isPooled: isPooled, isQuestion: form != nil)
        return Exchange(self, for: stream, facts)
    }

    /// Decides again whether the peer is trusted: what was a proxy before a reload may be a
    /// stranger now.
    func settle(_ peer: ClientPeer) {
        peer.settingsNumber = settingsNumber
        peer.provenance = provenance(of: peer.address, isSecure: peer.isSecure)
        switch (ownAddress(peer.address, isUnix: peer.isUnix), peer.entry) {
        case (nil, let entry?):
            entry.release(now: MonotonicClock.nanoseconds)
            peer.entry = nil
        case (let address?, nil):
            // The connection exists already, so the limit of connections does not apply.
            if case .held(let entry) = hold(address, max: nil) { peer.entry = entry }
        case (nil, nil), (_?, _?): break
        }
    }

    /// Counts a further concurrent request of a connection as a connection of its address; `false`
    /// when the address has the most allowed. Give it back with ``giveBackPlace(of:)``.
    package func takePlace(of entry: AddressEntry?) -> Bool {
        guard hasPlace else {
            tally.add(.connectionsRefused)
            return false
        }
        let max = settings.limits.addressConnectionsMax
        guard entry?.holdAgain(max: max) ?? true else {
            tally.add(.addressConnectionsRefused)
            return false
        }
        connections.placeCount += 1
        return true
    }

    /// Counts such a request that is already under way: no limit applies.
    package func keepPlace(of entry: AddressEntry?) {
        _ = entry?.holdAgain(max: nil)
        connections.placeCount += 1
    }

    /// Such a request is over.
    package func giveBackPlace(of entry: AddressEntry?) {
        entry?.release(now: MonotonicClock.nanoseconds)
        connections.placeCount -= 1
    }

    /// Adds this number to the bytes of responses that wait on HTTP/2 connections; it may be
    /// negative. Any connection may have to drop waiting responses.
    package func countUnsent(_ change: Int) {
        held.countUnsent(change)
        let max = held.share(of: settings.limits.http2.unsentTotalMax)
        connections.countUnsent(change, max: max, now: loop.now)?.dropWaiting()
    }

    private func provenance(of peer: IPAddress, isSecure: Bool) -> ProvenanceWriter {
        ProvenanceWriter(
            peer: peer,
            peerIsTrusted: settings.isTrusted(peer),
            isSecure: isSecure,
            writesForwarded: settings.writesForwarded
        )
    }

    /// Appends the response to input that is no request. The connection ends after it.
    func answer(_ fault: HeadFault, into out: inout [UInt8]) {
        let response: LocalResponse
        switch fault {
        case .malformed(let reason):
            tally.add(.malformedRequests)
            response = LocalResponse(.malformed(reason))
        case .timeout:
            tally.add(.clientTimeouts)
            response = LocalResponse(.fault(.headTimeout))
        }
        tally.addStatus(response.status)
        response.write(into: &out, date: date, connection: .close, isHead: false)
    }

    /// A client was too slow in taking its response.
    package func clientWasTooSlow() { tally.add(.clientTimeouts) }

    func noted(_ event: HTTP2Event) {
        switch event {
        case .began: tally.add(.http2Connections)
        case .streamsFailed(let count): tally.add(.http2StreamErrors, UInt64(count))
        case .stalled: tally.add(.http2Stalls)
        case .exceeded(let excess, let address):
            tally.add(.http2Excesses)
            guard settings.logsAccess, settings.logRule.form == .json else { return }
            lines.log.begin()
            lines.log.time(loop.wallMilliseconds, as: settings.logRule.time)
            lines.log.member("client", address.text)
            lines.log.member("protocol", ClientProtocol.http2.rawValue)
            lines.log.member("problem", excess.rawValue)
            lines.log.end()
        }
    }

    func clientTLSFailed(_ failure: TLSFailure, _ address: IPAddress) {
        tally.add(.tlsFailures)
        connections.refused(failure, address)
    }
}

/// The connections of an event loop's clients, what counts as one, and how often refused
/// connections are reported.
struct OpenConnections {
    var clients: [ObjectIdentifier: any ClientConnection] = [:]
    /// Connections whose PROXY header is still to come.
    var proxied: [ObjectIdentifier: ProxiedConnection] = [:]
    /// HTTP/2 requests that count as connections.
    var placeCount = 0
    /// Bytes of responses that wait for HTTP/2 clients.
    private var unsentBytes = 0
    /// When one of those clients' connections last had to drop its waiting responses.
    private var droppedAt: UInt64 = 0
    private var proxiedPace = ProxiedFault.Pace()
    private var certificatePace = ProxiedFault.Pace()
    /// Called at a limited rate for connections without a valid PROXY header.
    var proxiedFailed: ((ProxiedFault) -> Void)?
    /// Called when a client's certificate was refused or missing, with the number of cases since
    /// the last call.
    var certificateRefused: ((TLSFailure.Reason, IPAddress, Int) -> Void)?

    /// Connections of clients, and connections that will become one.
    var count: Int { clients.count + proxied.count }

    /// Counts bytes that wait for HTTP/2 clients.
    ///
    /// - now: milliseconds of the event loop's clock.
    /// - Returns: the connection that must drop its waiting responses, where more than `max` bytes
    ///   wait: at most once per millisecond, since all connections are compared.
    mutating func countUnsent(_ change: Int, max: Int, now: UInt64) -> (any ClientConnection)? {
        unsentBytes += change
        guard change > 0, unsentBytes > max, droppedAt != now else { return nil }
        droppedAt = now
        return clients.values.max { $0.waitingBytes < $1.waitingBytes }
    }

    /// Reports a connection without a valid PROXY header.
    mutating func failed(_ reason: ProxiedFault.Reason, _ peer: SocketAddress) {
        guard let count = proxiedPace.count(now: MonotonicClock.nanoseconds) else { return }
        proxiedFailed?(ProxiedFault(reason, peer, count: count))
    }

    /// Reports a client whose certificate is refused or missing.
    mutating func refused(_ failure: TLSFailure, _ address: IPAddress) {
        guard failure.reason == .certificateMissing || failure.isAboutCertificate,
            let count = certificatePace.count(now: MonotonicClock.nanoseconds)
        else { return }
        certificateRefused?(failure.reason, address, count)
    }
}

// The event loop's services for origins' pools.
extension ProxyLoop: OriginHost {
    func note(_ event: OriginEvent) {
        switch event {
        case .connectBegan: tally.add(.originConnects)
        case .handshakeFailed(let failure):
            tally.add(.originTLSFailures)
            if failure.isAboutCertificate { tally.add(.originCertificateFailures) }
        case .connectFailed: tally.add(.originConnectFailures)
        case .connectionReused: tally.add(.originReuses)
        case .http2Began: tally.add(.originHTTP2Connections)
        case .http2Ended: tally.add(.originHTTP2Ended)
        case .streamBegan: tally.add(.originHTTP2Streams)
        case .http2Frames(let counts):
            tally.add(.originHTTP2ResetsReceived, UInt64(counts.resetsReceived))
            tally.add(.originHTTP2ResetsSent, UInt64(counts.resetsSent))
            tally.add(.originHTTP2GoAways, UInt64(counts.goAways))
        case .queued: tally.add(.originQueued)
        case .dequeued(let time): tally.add(.originQueue, nanoseconds: time)
        case .queueFull: tally.add(.originQueueFull)
        case .queueTimeout: tally.add(.originQueueTimeouts)
        }
    }
}
