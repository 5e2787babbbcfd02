import EventLoops
import HTTPWire
import Telemetry
import Verification

/// A client's HTTP/1 connection: finds heads, serves one request after the other, lingers, closes.
final class HTTP1Connection: Connection, ClientConnection {
    enum Phase {
        /// Nothing has come yet, and the client may speak HTTP/2. Leaves to `head`, closed.
        case first
        /// Between requests, or in the middle of a head. Leaves to `request`, `lingering`, closed.
        case head
        /// A request is under way. Leaves to `head`, `skipping`, `lingering`, `tunnel`, closed.
        case request(HTTP1Stream)
        /// A response was sent; the rest of its request's content is read and discarded. Leaves to
        /// `head`, `lingering`, closed.
        case skipping(HTTP1Stream, Lingering)
        /// The last response was sent; further input is read and discarded. Leaves to closed.
        case lingering(Lingering)
        /// Upgraded. Leaves to closed.
        case tunnel(any ByteStreamOwner)
    }

    // The order leaves no padding: there are many idle connections.

    let host: ProxyLoop
    private var phase = Phase.head
    /// Whether the scanner has seen all of the inbox.
    private var isInboxScanned = false
    /// The address is over a limit. The next request is not read yet, so that a flood costs its
    /// sender time, not the gateway.
    private var isPaused = false
    /// Bytes of the request under way came before the last response was sent, so its client may
    /// not have read that one.
    private(set) var isPipelined = false
    let client: ClientPeer
    /// What the client had still to take when the deadline was set. The kernel's part counts: it
    /// makes room in large steps only, and between them a slow reader looks like one that stands.
    private var untakenAtDeadline: UInt32 = 0
    /// Bytes that were read and not used: a partial head, or input after a message.
    @exclusivity(unchecked) var inbox: [UInt8] = []
    @exclusivity(unchecked) private var scanner: HeadScanner
    /// How long a connection over its limit is not read: the smallest value of `Retry-After`.
    private static let pauseMilliseconds: UInt64 = 1_000

    init(
        _ descriptor: Int32,
        _ peer: SocketAddress,
        tls: TLSSession?,
        client: ClientPeer,
        host: ProxyLoop
    ) {
        self.host = host
        self.client = client
        scanner = HeadScanner(.request(isSecure: tls != nil))
        super.init(
            descriptor: descriptor,
            peer: peer,
            isConnecting: false,
            tls: tls,
            on: host.loop
        )
    }

    /// Waits for the first head.
    func begin(takesHTTP2: Bool) {
        if takesHTTP2 { phase = .first }
        setDeadline(milliseconds: whileServing(host.settings.timeouts.handshake))
    }

    /// The time to wait for a request: shorter while the gateway drains.
    private func whileServing(_ milliseconds: UInt64) -> UInt64 {
        host.isDraining ? min(milliseconds, host.settings.timeouts.drainIdle) : milliseconds
    }

    /// Closes the connection and notifies the request under way.
    override public func close() {
        guard !isClosed else { return }
        super.close()
        // The request's resources are counted with the address, so the address is released after
        // it.
        defer { host.connectionClosed(self) }
        switch phase {
        case .request(let stream): stream.closed()
        // The tunnel's owner is notified also when the remaining bytes can't be sent: only it ends
        // the other side.
        case .tunnel(let owner): owner.closed(self)
        case .first, .head, .skipping, .lingering: break
        }
        // Stream and connection hold each other.
        phase = .head
    }

    // MARK: Events

    /// There may be something to read.
    override public func inputReady() {
        switch phase {
        case .first, .head: readHead()
        case .request(let stream):
            stream.owner?.contentReady()
            if case .request(let stream) = phase, stream.owner?.isUploaded == true, unsentBytes == 0
            {
                expectNothing()
            }
        case .skipping(let stream, let lingering): skipContent(of: stream, lingering)
        case .lingering: drainInput()
        case .tunnel(let owner): owner.readable(self)
        }
    }

    /// All bytes that waited were sent.
    override public func outputDrained() {
        switch phase {
        case .first, .head: awaitHead()
        case .request(let stream): stream.owner?.clientDrained()
        case .skipping(let stream, _): skip(stream)
        case .lingering: finishLingering()
        case .tunnel(let owner): owner.drained(self)
        }
    }

    /// The bytes that waited can't be sent.
    override public func outputFailed() { close() }

    /// The client has closed both directions, and this was not read yet.
    override public func brokeWhileUnread() {
        switch phase {
        // The end is read after the last bytes. With bytes unread, a close would be a reset.
        case .lingering where isReadable && unsentBytes == 0: break
        case .first, .head, .skipping, .lingering: close()
        case .request(let stream): if stream.owner?.clientBroke() != false { close() }
        case .tunnel(let owner): owner.broke(self)
        }
    }

    /// The awaited input did not come in time.
    override public func deadlinePassed() {
        if unsentBytes > 0 { return outputTimedOut() }
        switch phase {
        case .first, .head:
            if isPaused {
                isPaused = false
                return awaitHead()
            }
            // An idle connection is closed without an answer: the client would take it for the
            // answer to a request that may be on its way (RFC 9112 §9.5).
            guard scanner.hasBegun else { return closeIdle() }
            answer(.timeout)
        case .request(let stream):
            guard stream.owner?.isUploaded == true else { return stream.contentTimedOut() }
            guard host.isDraining, isEnding else { return }
            // The client takes its response, so it is still there.
            if stream.hasSent { return expectNothing() }
            // An orderly end would make an incomplete response look whole, if the response ends
            // with its connection.
            reset()
        case .skipping, .lingering: close()
        case .tunnel(let owner): owner.failed(self)
        }
    }

    private func outputTimedOut() {
        let taken = UInt64(max(Int(untakenAtDeadline) - untakenBytes, 0))
        guard host.settings.timeouts.isTooLittle(taken: taken) else { return watchOutput() }
        host.tally.add(.clientTimeouts)
        if case .request(let stream) = phase { stream.end = .tooSlow }
        // An orderly end would make an incomplete response look whole, if the response ends with
        // its connection.
        reset()
    }

    /// Closes an idle connection. While the gateway drains, it first serves a request that came in
    /// the last moment.
    private func closeIdle() {
        guard host.isDraining, !isEnding, !isSilent() else { return close() }
        setDeadline(milliseconds: host.settings.timeouts.drainIdle)
        expectInput()
        loop.resume(self)
    }

    /// The request is complete, and nothing waits for the client.
    ///
    /// The gateway also serves a client that has ended its own direction, as HAProxy does by
    /// default and nginx does not: the client may wait for its response. The gateway learns only by
    /// sending whether the client still waits. So while the gateway drains, this wait is bounded.
    func expectNothing() {
        let waits = host.isDraining && isEnding
        if waits, case .request(let stream) = phase { stream.hasSent = false }
        setDeadline(milliseconds: waits ? host.settings.timeouts.drainIdle : nil)
    }

    /// Starts the client's time to take the waiting bytes.
    func watchOutput() {
        untakenAtDeadline = UInt32(clamping: untakenBytes)
        setDeadline(milliseconds: host.settings.timeouts.responseIdle)
    }
}

// Heads.
extension HTTP1Connection {
    private func readHead() {
        guard unsentBytes == 0, !isPaused else { return }
        if !inbox.isEmpty, !isInboxScanned {
            let bytes = inbox
            return takeHead(bytes.span, isInbox: true)
        }
        switch read() {
        case .bytes(let bytes):
            guard !inbox.isEmpty else { return takeFirst(bytes.span, isInbox: false) }
            inbox.append(contentsOf: bytes)
            let all = inbox
            takeFirst(all.span, isInbox: true)
        case .wouldBlock: break
        case .ended: close()
        case .failed(let error):
            if case .tls(let failure) = error { host.clientTLSFailed(failure, client.address) }
            close()
        }
    }

    /// Determines whether the client speaks HTTP/2: TLS has negotiated it, or the first bytes show
    /// it (RFC 9113 §3.3, §3.4).
    private func takeFirst(_ bytes: Span<UInt8>, isInbox: Bool) {
        guard case .first = phase else { return takeHead(bytes, isInbox: isInbox) }
        if hasAgreedHTTP2 { return becomeHTTP2(bytes) }
        guard !client.isSecure else {
            phase = .head
            return takeHead(bytes, isInbox: isInbox)
        }
        switch HTTP2Preface(bytes) {
        case .complete: becomeHTTP2(bytes)
        case .partial:
            guard !isInbox else { return }
            bytes.withUnsafeBufferPointer { inbox.append(contentsOf: $0) }
            isInboxScanned = true
            setDeadline(milliseconds: host.settings.timeouts.head)
        case .other:
            phase = .head
            takeHead(bytes, isInbox: isInbox)
        }
    }

    private func becomeHTTP2(_ bytes: Span<UInt8>) {
        let session: HTTP2Session
        var limits = host.settings.limits.http2
        // A proxy's connection has the queries of many clients. None of them must end it: neither
        // by going, when the proxy gives up its query (Traefik and Caddy then ping, too), nor by a
        // malformed request, nor by a head that the proxy takes and the gateway does not. Envoy
        // takes 60 KiB.
        if client.decides != nil, client.isTrusted {
            (limits.resets, limits.provokedResets, limits.pings) = (nil, nil, nil)
            limits.head.headBytesMax = max(limits.head.headBytesMax, 64 << 10)
        }
        do throws(HTTP2Session.Fault) {
            session = try HTTP2Session(
                limits,
                nonce: UInt64.random(in: 0...UInt64.max),
                memory: host.headMemory
            )
        } catch {
            return close()
        }
        let successor = handOver { descriptor, tls in
            HTTP2Connection(descriptor, tls: tls, after: self, session: session)
        }
        host.replaced(self, by: successor)
        successor.begin(bytes)
    }

    private func takeHead(_ bytes: Span<UInt8>, isInbox: Bool) {
        let hadBegun = scanner.hasBegun
        let settings = host.settings
        do throws(Malformed) {
            switch try scanner.scan(bytes, limits: settings.limits.requestHead) {
            case .needMore:
                if !isInbox { bytes.withUnsafeBufferPointer { inbox.append(contentsOf: $0) } }
                isInboxScanned = true
                if scanner.hasBegun, !hadBegun { setDeadline(milliseconds: settings.timeouts.head) }
                if isReadable { resumeReading() }
            case .complete(let range):
                isInboxScanned = false
                scanner = HeadScanner(.request(isSecure: client.isSecure))
                let rest = bytes.extracting(droppingFirst: range.upperBound)
                if isInbox || !rest.isEmpty {
                    inbox = rest.withUnsafeBufferPointer { Array($0) }
                }
                beginRequest(bytes.extracting(range), settings)
            }
        } catch {
            inbox = []
            answer(.malformed(error.reason))
        }
    }

    private func beginRequest(_ head: Span<UInt8>, _ settings: ProxySettings) {
        if client.settingsNumber != host.settingsNumber { host.settle(client) }
        noteCertificate()
        let heads = host.heads
        let fault = heads.fault(in: head, of: client, settings.limits)
        let stream = HTTP1Stream(heads.request, on: self, settings, isMalformed: fault != nil)
        let owner = host.owner(for: stream, head, fault: fault)
        stream.owner = owner
        phase = .request(stream)
        owner.begin(head, fault: fault)
    }
}

// Between requests.
extension HTTP1Connection {
    /// The request is over, and the connection continues with the next head.
    func takeNext() {
        guard !isClosed else { return }
        phase = .head
        isPipelined = !inbox.isEmpty || isReadable
        if unsentBytes > 0 { return watchOutput() }
        awaitHead()
    }

    private func awaitHead() {
        if isPaused { return setDeadline(milliseconds: Self.pauseMilliseconds) }
        setDeadline(milliseconds: whileServing(host.settings.timeouts.idle))
        if !inbox.isEmpty { loop.resume(self) } else { resumeReading() }
    }

    /// Delays the next request.
    func pause() { isPaused = true }

    /// The connection is a tunnel from now on.
    func becomeTunnel(of owner: any ByteStreamOwner) { phase = .tunnel(owner) }

    /// The gateway ends. What waits for a request waits a little longer: the client may have sent
    /// one that is on its way, and is answered with `Connection: close` (RFC 9112 §9.6, §9.8).
    func drain() {
        switch phase {
        case .first, .head:
            guard unsentBytes == 0, !scanner.hasBegun, inbox.isEmpty, !isPaused else { return }
            setDeadline(milliseconds: host.settings.timeouts.drainIdle)
        case .request(let stream):
            if unsentBytes == 0, isEnding, stream.owner?.isUploaded == true { expectNothing() }
        case .skipping, .lingering, .tunnel: break
        }
    }

    /// The time to end by itself is over.
    func abort() {
        switch phase {
        case .tunnel(let owner): owner.failed(self)
        case .request(let stream):
            stream.end = .drained
            reset()
        case .first, .head, .skipping, .lingering: if unsentBytes > 0 { reset() } else { close() }
        }
    }
}

// Endings.
extension HTTP1Connection {
    /// Answers input that was no request, then ends the connection.
    private func answer(_ fault: HeadFault) {
        var out = loop.takeOutput()
        host.answer(fault, into: &out)
        let outcome = write(out.span, Span(), before: .end)
        loop.giveBack(&out)
        if case .failed = outcome { return close() }
        linger()
    }

    /// Reads and discards the rest of a request's content, then goes on with the next head.
    func skip(_ stream: HTTP1Stream) {
        guard !isClosed else { return }
        let lingering = host.lingering
        phase = .skipping(stream, lingering)
        if unsentBytes > 0 { return watchOutput() }
        awaitRest(lingering)
    }

    private func skipContent(of stream: HTTP1Stream, _ lingering: Lingering) {
        guard unsentBytes == 0 else { return }
        switch read() {
        case .bytes(let bytes):
            guard !stream.skip(bytes.span) else { return takeNext() }
            awaitRest(lingering)
        case .wouldBlock: return
        case .ended, .failed: close()
        }
    }

    /// Shuts down the output, then reads and discards further input.
    func linger() {
        guard !isClosed else { return }
        inbox = []
        phase = .lingering(host.lingering)
        if unsentBytes == 0 { finishLingering() } else { watchOutput() }
    }

    private func finishLingering() {
        // The kernel has the whole response.
        resetsOnClose = false
        shutDownOutput()
        guard unsentBytes == 0 else { return watchOutput() }
        let lingering = host.lingering
        phase = .lingering(lingering)
        awaitRest(lingering)
    }

    private func drainInput() {
        guard unsentBytes == 0 else { return }
        guard case .lingering(var lingering) = phase else { return }
        switch read() {
        case .bytes(let bytes):
            guard lingering.discard(bytes.count) else { return close() }
            phase = .lingering(lingering)
            awaitRest(lingering)
        case .wouldBlock: return
        case .ended, .failed: return close()
        }
    }

    /// Waits for bytes to discard, unless the time for all of them is over. A deadline that is set
    /// then lies one tick ahead, and bytes that keep coming would move it each time.
    private func awaitRest(_ lingering: Lingering) {
        let wait = lingering.wait(now: loop.now)
        guard wait > 0 else { return close() }
        setDeadline(milliseconds: wait)
        resumeReading()
    }
}
