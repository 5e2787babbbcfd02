import HTTPWire
import Lanes
import TLSSession
import Telemetry
import Verification

/// A client's connection: reads heads, hands content over, writes answers, lingers, closes.
final class ClientConnection: Connection {
    enum Phase {
        /// Between requests, or in the middle of a head. Leaves to `exchange`, `lingering`, closed.
        case head
        /// A request is under way. Leaves to `head`, `lingering`, `tunnel`, closed.
        case exchange(Exchange)
        /// The last answer is out; what still comes is read away. Leaves to closed.
        case lingering(drained: Int)
        /// Upgraded. Leaves to closed.
        case tunnel(Tunnel)
    }

    let proxy: ProxyLane
    private(set) var phase = Phase.head
    /// Octets that were read and not used: a partial head, or what followed a message.
    var inbox: [UInt8] = []
    private var scanner: HeadScanner
    /// What the client had still to take when the deadline was set. The kernel's part counts: it
    /// makes room in large steps only, and between them a slow reader looks like one that stands.
    private var untakenAtDeadline = 0
    /// The address is over a limit: the next request is not read yet, so that a flood takes its
    /// sender's time and not the gateway's.
    private var isPaused = false
    /// As long as `Retry-After` says at least.
    private static let pauseMilliseconds: UInt64 = 1_000
    let isSecure: Bool
    let peerAddress: IPAddress
    /// What the peer's address has used of its limits; `nil` where it has none of its own.
    private(set) var addressEntry: AddressEntry?
    /// Says to origins who the client is.
    private(set) var provenance: ProvenanceWriter
    /// Of the settings by which it was decided whether the peer is trusted.
    private var settingsNumber: UInt32

    init(
        _ descriptor: Int32,
        _ peer: SocketAddress,
        tls: TLSSession?,
        entry: AddressEntry?,
        proxy: ProxyLane
    ) {
        self.proxy = proxy
        isSecure = tls != nil
        peerAddress = peer.ipAddress
        addressEntry = entry
        provenance = Self.provenance(of: peer, isSecure: tls != nil, proxy.settings)
        settingsNumber = proxy.settingsNumber
        scanner = HeadScanner(.request(isSecure: tls != nil))
        super.init(
            descriptor: descriptor,
            peer: peer,
            isConnecting: false,
            tls: tls,
            on: proxy.lane
        )
    }

    private static func provenance(
        of peer: SocketAddress,
        isSecure: Bool,
        _ settings: ProxySettings
    ) -> ProvenanceWriter {
        ProvenanceWriter(
            peer: peer.ipAddress,
            peerIsTrusted: settings.isTrusted(peer.ipAddress),
            isSecure: isSecure,
            writesForwarded: settings.writesForwarded
        )
    }

    /// Decides anew whether the peer is trusted, where a reload came since the last request: what
    /// was a proxy then may be a stranger now.
    func settle() {
        guard settingsNumber != proxy.settingsNumber else { return }
        settingsNumber = proxy.settingsNumber
        provenance = Self.provenance(of: peer, isSecure: isSecure, proxy.settings)
        let address = proxy.ownAddress(of: peer)
        switch (address, addressEntry) {
        case (nil, let entry?):
            entry.release(now: MonotonicClock.nanoseconds)
            addressEntry = nil
        case (let address?, nil):
            // The connection is there already, so the limit of connections does not count.
            if case .held(let entry) = proxy.hold(address, max: nil) { addressEntry = entry }
        case (nil, nil), (_?, _?): break
        }
    }

    /// Waits for the first head.
    func begin() {
        setDeadline(milliseconds: whileServing(proxy.settings.timeouts.handshake))
    }

    /// A time to wait for a request: a shorter one while the gateway drains.
    private func whileServing(_ milliseconds: UInt64) -> UInt64 {
        let timeouts = proxy.settings.timeouts
        return proxy.isDraining ? min(milliseconds, timeouts.drainIdle) : milliseconds
    }

    override func close() {
        guard !isClosed else { return }
        super.close()
        // What an exchange holds is counted with the address, which is let go behind it.
        defer { proxy.clientClosed(self) }
        switch phase {
        case .exchange(let exchange): exchange.clientClosed()
        // Also when what waits for the client can't be sent: nobody else ends the other side.
        case .tunnel(let tunnel): tunnel.end()
        case .head, .lingering: break
        }
    }

    // MARK: Events

    override func inputReady() {
        switch phase {
        case .head: readHead()
        case .exchange(let exchange):
            exchange.clientReadable()
            if case .exchange(let exchange) = phase, exchange.isUploaded, unsentBytes == 0 {
                expectNothing()
            }
        case .lingering: drainInput()
        case .tunnel(let tunnel): tunnel.relay(from: self)
        }
    }

    override func outputDrained() {
        switch phase {
        case .head: awaitHead()
        case .exchange(let exchange): exchange.clientDrained()
        case .lingering: finishLingering()
        case .tunnel(let tunnel): tunnel.drained(self)
        }
    }

    override func outputFailed() { close() }

    override func brokeWhileUnread() {
        switch phase {
        case .head, .lingering: close()
        // What was verified whole arrives whole: nobody chooses where it ends by going away. That
        // the client is gone shows again when something is sent to it.
        case .exchange(let exchange): if !exchange.isGivingWhole { close() }
        case .tunnel(let tunnel): tunnel.clientBroke()
        }
    }

    override func deadlinePassed() {
        if unsentBytes > 0 {
            let timeouts = proxy.settings.timeouts
            let wanted = timeouts.responseMinimumRate * timeouts.responseIdle / 1000
            let taken = UInt64(max(untakenAtDeadline - untakenBytes, 0))
            guard taken == 0 || taken < wanted else { return watchOutput() }
            proxy.tally.add(.clientTimeouts)
            if case .exchange(let exchange) = phase { exchange.willDropClient("client-timeout") }
            // An orderly end would make a whole response of one that ends with its connection.
            return reset()
        }
        switch phase {
        case .head:
            if isPaused {
                isPaused = false
                return awaitHead()
            }
            // An idle connection is closed without a word: an answer would be taken for one to the
            // request that may be on its way (RFC 9112 §9.5).
            guard scanner.hasBegun else { return closeIdle() }
            proxy.tally.add(.clientTimeouts)
            answerError(status: 408, reason: "head-timeout")
        case .exchange(let exchange):
            guard exchange.isUploaded else { return exchange.clientTimedOut() }
            // An orderly end would make a whole response of one that ends with its connection.
            if proxy.isDraining, isEnding { reset() }
        case .lingering: close()
        case .tunnel(let tunnel): tunnel.end()
        }
    }

    /// Closes an idle connection. While the gateway drains, a request that came in the last moment
    /// is served first.
    private func closeIdle() {
        guard proxy.isDraining, !isEnding, !isSilent() else { return close() }
        setDeadline(milliseconds: proxy.settings.timeouts.drainIdle)
        expectInput()
        lane.resume(self)
    }

    /// The request is complete, and nothing waits for the client.
    ///
    /// A client that has ended its own direction is served all the same, as HAProxy does by default
    /// and nginx does not: it may wait for its response. Whether it does, or is gone, shows only
    /// when something is sent. So while the gateway drains, its wait is bounded.
    func expectNothing() {
        let waits = proxy.isDraining && isEnding
        setDeadline(milliseconds: waits ? proxy.settings.timeouts.drainIdle : nil)
    }

    /// Gives the client time to take what waits for it.
    func watchOutput() {
        untakenAtDeadline = untakenBytes
        setDeadline(milliseconds: proxy.settings.timeouts.responseIdle)
    }

    // MARK: Heads

    private func readHead() {
        guard unsentBytes == 0, !isPaused else { return }
        if !inbox.isEmpty, !isInboxScanned {
            let octets = inbox
            return takeHead(octets.span, isInbox: true)
        }
        switch read() {
        case .octets(let octets):
            guard !inbox.isEmpty else { return takeHead(octets.span, isInbox: false) }
            inbox.append(contentsOf: octets)
            let all = inbox
            takeHead(all.span, isInbox: true)
        case .wouldBlock: break
        case .ended: close()
        case .failed(let error):
            if case .tls = error { proxy.tally.add(.tlsFailures) }
            close()
        }
    }

    /// Whether the scanner has seen all of the inbox.
    private var isInboxScanned = false

    private func takeHead(_ octets: Span<UInt8>, isInbox: Bool) {
        let hadBegun = scanner.hasBegun
        do throws(Malformed) {
            switch try scanner.scan(octets, limits: proxy.settings.limits.requestHead) {
            case .needMore:
                if !isInbox { octets.withUnsafeBufferPointer { inbox.append(contentsOf: $0) } }
                isInboxScanned = true
                if scanner.hasBegun, !hadBegun {
                    setDeadline(milliseconds: proxy.settings.timeouts.head)
                }
                if isReadable { resumeReading() }
            case .complete(let range):
                isInboxScanned = false
                scanner = HeadScanner(.request(isSecure: isSecure))
                let rest = octets.extracting(droppingFirst: range.upperBound)
                if isInbox || !rest.isEmpty {
                    inbox = rest.withUnsafeBufferPointer { Array($0) }
                }
                let exchange = Exchange(proxy, for: self)
                phase = .exchange(exchange)
                exchange.begin(octets.extracting(range))
            }
        } catch {
            proxy.tally.add(.malformedRequests)
            inbox = []
            answerError(status: error.reason.status, reason: error.reason.rawValue)
        }
    }

    // MARK: Between requests

    /// The exchange is over and the connection goes on with the next head.
    func exchangeEnded() {
        guard !isClosed else { return }
        phase = .head
        if unsentBytes > 0 { return watchOutput() }
        awaitHead()
    }

    private func awaitHead() {
        if isPaused { return setDeadline(milliseconds: Self.pauseMilliseconds) }
        setDeadline(milliseconds: whileServing(proxy.settings.timeouts.idle))
        if !inbox.isEmpty { lane.resume(self) } else { resumeReading() }
    }

    /// Lets the next request wait.
    func pause() { isPaused = true }

    /// The upgrade has begun.
    func becomeTunnel(_ tunnel: Tunnel) {
        phase = .tunnel(tunnel)
    }

    /// The gateway ends. What waits for a request waits a little longer: the client may have sent
    /// one that is on its way, and is answered with `Connection: close` (RFC 9112 §9.6, §9.8).
    func drain() {
        guard unsentBytes == 0 else { return }
        switch phase {
        case .head:
            guard !scanner.hasBegun, inbox.isEmpty, !isPaused else { return }
            setDeadline(milliseconds: proxy.settings.timeouts.drainIdle)
        case .exchange(let exchange): if exchange.isUploaded, isEnding { expectNothing() }
        case .lingering, .tunnel: break
        }
    }

    /// The time to end by itself is over.
    func abort() {
        switch phase {
        case .tunnel(let tunnel): tunnel.end()
        case .exchange(let exchange):
            exchange.willDropClient("drain-timeout")
            reset()
        case .head, .lingering: if unsentBytes > 0 { reset() } else { close() }
        }
    }

    // MARK: Endings

    /// Answers what was no request, then ends the connection.
    func answerError(status: Int, reason: String) {
        var out = proxy.takeOutput()
        LocalAnswer.error(status: status, reason: reason).write(
            into: &out,
            date: proxy.date,
            closes: true,
            isHead: false
        )
        proxy.tally.addStatus(status)
        let outcome = write(out.span)
        proxy.giveBack(&out)
        if case .failed = outcome { return close() }
        linger()
    }

    /// Says that nothing more will be sent, and reads away what still comes for a bounded time and
    /// amount, so that the client sees the answer and no reset (RFC 9112 §9.6).
    func linger() {
        guard !isClosed else { return }
        inbox = []
        phase = .lingering(drained: 0)
        setDeadline(milliseconds: proxy.settings.timeouts.linger)
        if unsentBytes == 0 { finishLingering() } else { watchOutput() }
    }

    private func finishLingering() {
        shutDownOutput()
        setDeadline(milliseconds: proxy.settings.timeouts.linger)
        resumeReading()
    }

    private func drainInput() {
        guard unsentBytes == 0 else { return }
        guard case .lingering(let drained) = phase else { return }
        switch read() {
        case .octets(let octets):
            guard drained + octets.count <= proxy.settings.limits.drainBytesMax else {
                return close()
            }
            phase = .lingering(drained: drained + octets.count)
            resumeReading()
        case .wouldBlock: return
        case .ended, .failed: return close()
        }
    }
}
