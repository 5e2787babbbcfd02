import ClientStreams
import HTTPWire
import Lanes
import Origins
import Rules
import Telemetry
import Verification

/// One request and its response: performs what the request's machine, ``Flow``, says.
///
/// It owns what the machine has no eyes for: the client's stream, the connection to a server, the
/// content that is here, the head for the origin, and the line for the log. It tells the machine
/// what happens, and decides nothing. Lives on one lane from the request's head to the response's
/// end, and serves no other request.
final class Exchange {
    let proxy: ProxyLane
    let settings: ProxySettings
    /// The lane's when the request came, in the order of `settings.origins`: a reload may leave the
    /// lane with others.
    let pools: [OriginPool]
    /// Let go of when the request has been recorded.
    private(set) var client: (any ClientStream)?
    var side = OriginSide.none
    @exclusivity(unchecked) var flow: Flow
    /// The content that is here.
    @exclusivity(unchecked) var content = KeptContent.nothing
    /// The head for the origin; kept until the response begins, for a second attempt.
    @exclusivity(unchecked) var originHead: [UInt8]
    /// The head, while the store is asked for its key: the client's buffer goes on.
    var keptHead: [UInt8] = []
    /// What it shows of its device, where its rule asks for that.
    var device: DeviceVisit?
    /// Whose request it is, and what its address has used of its limits.
    var account: AddressAccount
    @exclusivity(unchecked) var record: RequestRecord
    /// Whose retries it counts with, while it is one.
    private var retried: OriginState?

    /// Counts with the retries of an origin, or no more.
    func countRetry(of origin: OriginState?) {
        retried?.retryEnded()
        origin?.retryBegan()
        retried = origin
    }

    init(_ proxy: ProxyLane, for client: any ClientStream, _ facts: RequestFacts) {
        self.proxy = proxy
        self.client = client
        settings = proxy.settings
        pools = proxy.pools
        flow = Flow(facts, fallback: proxy.settings.rules.fallback)
        originHead = proxy.takeHead()
        account = AddressAccount(client.peerAddress)
        record = RequestRecord(
            proxy.ids.next(),
            startedAt: MonotonicClock.nanoseconds,
            spoken: client.spoken
        )
    }

    /// Whether the request has not ended yet. What arrives later finds it over.
    var isUnderWay: Bool { !flow.isOver }

    var lane: Lane { proxy.lane }

    /// The connection to the server that has the request.
    var origin: OriginStream? {
        if case .connected(let stream) = side { stream } else { nil }
    }

    /// Performs an action and all that follow from it.
    func perform(_ first: Flow.Action) {
        var action = first
        while true {
            switch action {
            case .none: return
            case .judgeHead: action = judgeKeptHead()
            case .collect, .stream: return readFirstContent()
            case .hold: return hold()
            case .readContent: return readContent()
            case .awaitContent: client?.awaitContent()
            case .serve: action = serve()
            case .judgeContent: action = judgeContent()
            case .judgeEnd: action = judgeEnd()

            case .awaitCommit(let ticket): return awaitCommit(ticket)
            case .askDevice: action = askDevice()
            case .admit: action = admit()
            case .release: action = releaseContent()
            case .connect(let attempt): action = connect(attempt)
            case .retry(let why, let release, let attempt): action = retry(why, release, attempt)
            case .sendHead(let count, let ending): action = sendHead(with: count, ending)
            case .sendHeld(let offset): action = sendHeld(from: offset)
            case .endHeld: action = endHeld()
            case .streamOn:
                dropContent()
                client?.awaitContent()
                return readContent()
            case .sendContent(let piece): action = sendContent(piece)
            case .awaitResponse(let output, let held): return awaitResponse(output, held)
            case .endRequest(let output, let held): return endRequest(output, held)
            case .readLastWords: action = readLastWords()
            case .awaitOrigin: return watchOrigin()

            case .relay, .beginTunnel:
                preconditionFailure("Exchange: \(action) behind the response's head")
            case .answer(let reply, let release, let fate): return answer(reply, release, fate)
            case .finish(let release): return finish(release)
            case .cutOff(let reply, let release): return cutOff(reply, release)
            case .end(let release): return end(release)
            }
        }
    }

    /// The request is over and its client's stream has been dealt with.
    func leave() {
        Audit(self).requestEnded()
        letGo()
    }

    /// Lets go of what others share; the rest goes with the exchange.
    func letGo() {
        client = nil
        side = .none
        if retried != nil { countRetry(of: nil) }
        // It is counted with the address: before that is let go.
        dropContent()
        account.leave()?.release(now: MonotonicClock.nanoseconds)
        proxy.giveBack(head: &originHead)
    }

    /// Lets go of content. Where a signature was verified for it and nothing was admitted, that
    /// counts against the client's address.
    func dropContent() {
        let dropped = content
        content = .nothing
        if case .unjudged(_, let proof) = dropped, proof.hasCostSignature {
            addFailure(now: MonotonicClock.nanoseconds)
        }
        dropped.heldBody?.release()
    }
}

extension Exchange: ClientStreamOwner {
    func begin(_ octets: Span<UInt8>, fault: Malformed.Reason?) {
        perform(Admission(self).action(octets, fault: fault))
    }

    var isUploaded: Bool { flow.isUploaded }

    func contentReady() { perform(flow.contentReady()) }

    func contentTimedOut() { perform(flow.contentTimedOut()) }

    func clientDrained() {
        guard let client else { return }
        client.expectNothing()
        if flow.awaitsContent { client.awaitContent() }
        origin?.resumeReading()
    }

    func clientBroke() -> Bool { flow.clientBroke() }

    func clientClosed(_ why: ClientEnd) {
        guard client != nil else { return }
        if case .aborted = why { proxy.tally.add(.clientAborts) }
        record.note(problem: Self.problem(of: why))
        switch flow.clientClosed() {
        case .end(let release): end(release)
        // It was being answered.
        default: leave()
        }
    }

    private static func problem(of end: ClientEnd) -> String {
        switch end {
        case .aborted: "client-aborted"
        case .tooSlow: "client-timeout"
        case .drained: "drain-timeout"
        }
    }
}

/// The origin's side of a request.
enum OriginSide {
    case none
    /// Servers are tried until one takes a connection.
    case dialing(OriginDial)
    case connected(OriginStream)
}
