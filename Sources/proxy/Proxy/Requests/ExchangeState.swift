import EventLoops
import HTTPWire
import KeyStore
import Rules
import Telemetry
import Verification

/// The state of one request and its response, from the request's head to the response's end.
///
/// It has what the request's machine, ``Flow``, does not see: the client's stream, the connection
/// to a server, the content that is here, the head for the origin, and the record for the log. The
/// steps of a request read it and fill it in place, each in the file that is named for it; no step
/// knows the next one. ``Exchange`` takes them. Lives on one event loop.
class ExchangeState: CommitWaiter {
    final let proxy: ProxyLoop
    final let settings: ProxySettings
    /// The event loop's pools at the time of the request, in the order of `settings.origins`. A
    /// reload may give the event loop other pools.
    final let pools: [OriginPool]
    /// The other end of the client's connection.
    final let peer: ClientPeer
    /// Released when the request has been recorded.
    final private(set) var client: (any ClientStream)?
    @exclusivity(unchecked) final var side = OriginSide()
    @exclusivity(unchecked) final var flow: Flow
    @exclusivity(unchecked) final var content = KeptContent.nothing
    /// Kept until the response begins, for a second attempt.
    @exclusivity(unchecked) final var originHead: OriginHead
    /// The service that answers; `nil` where an origin does.
    final var call: ServiceCall?
    /// The head, while the store is asked for its key: the client's buffer is reused.
    final var keptHead: [UInt8] = []
    /// The request's device, where its rule asks for that.
    final var device: DeviceVisit?
    /// Its tokens, where its rule names any.
    final var tokens: ShownTokens?
    /// The client's address and its limits.
    final var account: AddressAccount
    @exclusivity(unchecked) final var record: RequestRecord

    init(_ proxy: ProxyLoop, for client: any ClientStream, _ facts: RequestFacts) {
        self.proxy = proxy
        self.client = client
        peer = client.peer
        settings = proxy.settings
        pools = proxy.pools
        flow = Flow(facts, fallback: proxy.settings.rules.fallback)
        originHead = OriginHead(bytes: proxy.takeHead())
        account = AddressAccount(peer.address)
        record = RequestRecord(
            proxy.ids.next(),
            startedAt: MonotonicClock.nanoseconds,
            spoken: client.spoken
        )
    }

    final var loop: EventLoop { proxy.loop }

    /// The connection to the server that has the request.
    final var origin: (any OriginStream)? { side.stream }

    /// The place of the rule's origin among the settings and the pools.
    final var originPlace: Int {
        guard let origin = flow.origin else {
            preconditionFailure("Exchange: a denied request is not forwarded")
        }
        return origin.rawValue
    }

    final var serviceCall: ServiceCall {
        guard let call else { preconditionFailure("Exchange: no service was chosen") }
        return call
    }

    /// How the content goes to a server. Held content has a known length, unless it was released
    /// before all of it had come.
    final var framingForOrigin: BodyFraming {
        let whole = flow.isReleased ? nil : content.heldBody
        return whole.map { .length(UInt64($0.count)) } ?? flow.facts.framing
    }

    /// Performs an action and all actions that follow; ``Exchange`` does.
    func perform(_ first: Flow.Action) { preconditionFailure("ExchangeState: no driver") }

    /// Releases shared objects; the rest is released with the exchange.
    final func letGo() {
        client = nil
        _ = side.leave()
        side.countRetry(of: nil)
        // The content is counted with the address, so it is released before that.
        dropContent()
        account.leave()?.release(now: MonotonicClock.nanoseconds)
        proxy.giveBack(head: &originHead.bytes)
    }

    /// Releases the content. If a signature was verified for it and the request was not admitted,
    /// that counts against the client's address.
    final func dropContent() {
        let dropped = content
        content = .nothing
        if dropped.hasCostSignature { addFailure(now: MonotonicClock.nanoseconds) }
        dropped.heldBody?.release()
    }

    /// The limits of content that the rule holds.
    final var heldBounds: HeldBody.Bounds {
        guard case .held(_, let memory) = flow.rule.body else {
            preconditionFailure("Exchange: content is held although the rule doesn't")
        }
        return HeldBody.Bounds(
            ledger: proxy.held,
            limits: settings.limits,
            entry: account.entry,
            memoryMax: memory.rawValue,
            folder: settings.options.spillFolder,
            files: proxy.files
        )
    }

    // MARK: Commits

    final var isOver: Bool { flow.isOver }

    final func commitEnded(_ decision: ConsumeDecision?, since: UInt64, until now: UInt64) {
        record.add(.commit, since: since, until: now)
        perform(Judging(self).resume(after: .commit(decision)))
    }

    final func storingTimedOut() { perform(flow.storingTimedOut()) }
}

// The limits of the client's address.
extension ExchangeState {
    /// Whether the client's address is known.
    var hasAddress: Bool {
        guard client != nil, account.address == peer.address else { return true }
        return !peer.isUnix || peer.isTrusted
    }

    /// Whether the gateway may verify a signature for the address.
    func mayVerify(now: UInt64) -> Bool {
        guard let wait = verificationWait(now: now) else { return true }
        account.wait = wait
        return false
    }

    /// Nanoseconds until the gateway may verify a signature for the address; `nil` when it may now.
    func verificationWait(now: UInt64) -> UInt64? {
        settings.addressFailures.flatMap { account.entry?.failureWait($0, now: now) }
    }

    /// Counts a verification that failed. The client may have gone by then.
    func addFailure(now: UInt64) {
        guard let rate = settings.addressFailures else { return }
        if let entry = account.entry { return entry.addFailure(rate, now: now) }
        guard account.isReleased, case .held(let entry) = proxy.hold(account.address, max: nil)
        else { return }
        entry.addFailure(rate, now: now)
        entry.release(now: now)
    }

    /// The address is over a limit. A connection of its own is then not read for a while. The
    /// connection of a trusted proxy is read on, since it also carries other clients' requests.
    func pauseAddress() { if account.hasConnection { client?.pause() } }
}
