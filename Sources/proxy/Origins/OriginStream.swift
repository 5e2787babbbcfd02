package import HTTPWire
package import Lanes

/// A connection to a server of an origin: sends one request after the other, reads the responses.
package final class OriginStream: Connection {
    private enum State {
        /// Being made for a request. Leaves to `busy`, closed.
        case connecting(any OriginStreamOwner)
        /// Carries a request. Leaves to `idle`, `tunnel`, closed.
        case busy(any OriginStreamOwner)
        /// In the pool: any byte or end is a fault. Leaves to `busy`, closed.
        case idle
        /// Carries a tunnel. Leaves to closed.
        case tunnel(any ByteStreamOwner)
    }

    package let server: OriginServer
    private var state: State
    /// Whether a request before this one used it.
    package private(set) var isReused = false
    /// Where heads are read.
    let heads: HeadScratch

    // The request; see ``begin(_:asksUpgrade:framing:limits:)``.
    var method = Method.other
    var asksUpgrade = false
    var limits: ResponseLimits
    var out = OutgoingContent()
    /// Whether `out` has the lane's memory.
    var isGathering = false
    /// What became of what was sent since the last ``flush()``.
    var outcome = WriteOutcome.sent

    // Its response.
    var progress = Progress.head
    /// The beginning of a head.
    var inbox: [UInt8] = []
    var scanner = HeadScanner(.response)
    var interimCount = 0
    var body = BodyReader(.none, limits: HeadLimits())
    /// Whether the server keeps the connection.
    var isPersistent = false

    /// How far a response was read.
    enum Progress {
        /// Its head is not complete.
        case head
        /// Its content is being read.
        case content
        /// All of it was read.
        case complete
        /// It can't be read on.
        case broken
    }

    /// A stream for `owner`, whose connect runs or has ended well.
    package init(
        _ server: OriginServer,
        for owner: any OriginStreamOwner,
        descriptor: Int32,
        isConnecting: Bool,
        limits: ResponseLimits,
        heads: HeadScratch,
        on lane: Lane
    ) {
        self.server = server
        self.limits = limits
        self.heads = heads
        state = isConnecting ? .connecting(owner) : .busy(owner)
        super.init(
            descriptor: descriptor,
            peer: server.settings.address,
            isConnecting: isConnecting,
            on: lane
        )
    }

    /// Whether it may carry another request: nothing to read, no end announced, as far as is known.
    var isFit: Bool { !isClosed && !isReadable }

    /// Whether it carries a request that has not ended.
    package var isBusy: Bool { if case .busy = state { true } else { false } }

    // MARK: Owners

    /// Takes the stream out of the pool for a request.
    package func take(for owner: any OriginStreamOwner) { state = .busy(owner) }

    /// The request is over. The connection waits for the next one, where it may and can, or ends.
    ///
    /// - isReusable: the request was sent whole, and the response was read whole.
    package func release(isReusable: Bool, idleTime: UInt64, idleMax: Int) {
        guard isReusable, isPersistent, progress == .complete, isFit else { return close() }
        state = .idle
        isReused = true
        flow = 0
        setDeadline(milliseconds: idleTime)
        server.keep(self, max: idleMax, round: lane.round)
    }

    /// The connection is a tunnel from now on.
    package func becomeTunnel(of owner: any ByteStreamOwner) -> any ByteStream {
        state = .tunnel(owner)
        return self
    }

    // MARK: Events

    /// The connect ended; `nil` for well.
    override public func connectEnded(_ error: SocketError?) {
        guard case .connecting(let owner) = state else { return }
        if let error { return owner.originConnectFailed(self, error) }
        state = .busy(owner)
        owner.originConnected(self)
    }

    /// There may be something to read.
    override public func inputReady() {
        switch state {
        case .connecting: break
        case .busy(let owner): owner.originReadable(self)
        case .idle: leavePool()
        case .tunnel(let owner): owner.readable(self)
        }
    }

    /// What waited has been sent.
    override public func outputDrained() {
        switch state {
        case .connecting, .idle: break
        case .busy(let owner): owner.originDrained(self)
        case .tunnel(let owner): owner.drained(self)
        }
    }

    /// What waited can't be sent.
    override public func outputFailed() {
        switch state {
        case .connecting, .idle: close()
        case .busy(let owner): owner.originWriteFailed(self)
        case .tunnel(let owner): owner.failed(self)
        }
    }

    /// What was awaited did not come in time.
    override public func deadlinePassed() {
        switch state {
        case .connecting(let owner):
            owner.originConnectFailed(self, SocketError("connect", code: 110))
        case .busy(let owner): owner.originTimedOut(self)
        case .idle: leavePool()
        case .tunnel(let owner): owner.failed(self)
        }
    }

    /// RFC 9112 §9.2: data without a request is no response; an end is an end.
    private func leavePool() {
        server.forget(self)
        close()
    }
}
