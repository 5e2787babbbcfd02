import EventLoops
import HTTPWire
import Services
import Telemetry
package import Verification

// Clients' connections: what counts as one, and their addresses.
extension ProxyLoop {
    /// Whether there is room for one more connection, or for one more concurrent request.
    var hasPlace: Bool {
        connections.count + connections.placeCount < settings.limits.connectionsMax
    }

    /// The peer's address, where it is the client's. A trusted proxy names the client's address
    /// with each request. The peer of a Unix socket has no address.
    func ownAddress(_ address: IPAddress, isUnix: Bool) -> IPAddress? {
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
    /// Decides again whether the peer is trusted: what was a proxy before a reload may be a
    /// stranger now.
    func settle(_ peer: ClientPeer) {
        peer.settingsNumber = settingsNumber
        peer.provenance = provenance(
            of: peer.address,
            isSecure: peer.isSecure,
            isNameless: peer.isNameless
        )
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

    /// Who tells origins of a peer's clients.
    ///
    /// - isNameless: whether the peer is a proxy that can't name its client, so that it has not
    ///   written the fields that name one.
    func provenance(
        of peer: IPAddress,
        isSecure: Bool,
        isNameless: Bool
    ) -> ProvenanceWriter {
        ProvenanceWriter(
            peer: peer,
            peerIsTrusted: !isNameless && settings.isTrusted(peer),
            isSecure: isSecure,
            writesForwarded: settings.options.writesForwarded
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

    /// A client's HTTP/2 connection ends, since a limit was exceeded.
    func exceeded(_ excess: HTTP2Excess, _ address: IPAddress) {
        tally.add(.http2Excesses)
        guard settings.options.logsAccess, settings.options.logRule.form == .json else { return }
        log.begin()
        log.time(loop.wallMilliseconds, as: settings.options.logRule.time)
        log.member("client", address.text)
        log.member("protocol", ClientProtocol.http2.rawValue)
        log.member("problem", excess.rawValue)
        log.end()
    }

    func clientTLSFailed(_ failure: TLSFailure, _ address: IPAddress) {
        tally.add(.tlsFailures)
        connections.refused(failure, address)
    }
}

// The event loop's services for origins' pools.
extension ProxyLoop: OriginHost {
    func count(_ counter: Counter, _ amount: UInt64) { tally.add(counter, amount) }

    func dequeued(after nanoseconds: UInt64) { tally.add(.originQueue, nanoseconds: nanoseconds) }
}

extension ProxyLoop {
    /// What a client may still send from now on after its last answer.
    var lingering: Lingering { Lingering(settings.timeouts, settings.limits, now: loop.now) }
}
