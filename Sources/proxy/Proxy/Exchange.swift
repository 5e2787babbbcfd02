import ClientStreams
import Cryptography
import HTTPWire
import Lanes
import Origins
import Rules
import Telemetry
import Verification

/// One request and its response: head → rule → verdict → decision → relay.
///
/// Lives on one lane from the request's head to the response's end, and serves no other request:
/// nothing of one request can be seen in the next, whatever properties are added here. Its topics
/// are in extensions: routing, judging, forwarding, upload, response, failure, endpoints.
final class Exchange: ClientStreamOwner, OriginStreamOwner {
    /// What happens with the request's content.
    enum Upload {
        /// Nothing is read: a verdict, a commit or an origin connection is awaited.
        /// Leaves to `holding`, `collecting`, `streaming`, `replaying`, `done`.
        case waiting
        /// Goes into `held`. Leaves to `done`, `replaying`, `abandoned`.
        case holding
        /// Goes into `collected`, for an endpoint of the gateway. Leaves to `done`, `abandoned`.
        case collecting
        /// Goes to the origin. Leaves to `done`, `abandoned`.
        case streaming
        /// `held` goes to the origin. Leaves to `done`, `streaming`, `abandoned`.
        case replaying(offset: Int)
        /// Read to its end.
        case done
        /// Nobody wants the rest: the client's connection ends with this exchange.
        case abandoned
    }

    let proxy: ProxyLane
    /// `nil` as soon as the request is over.
    private(set) var client: (any ClientStream)?
    var origin: OriginStream?
    let settings: ProxySettings
    /// The lane's when the request came, in the order of `settings.origins`: a reload may leave the
    /// lane with others.
    let pools: [OriginPool]
    var rule: Rule

    // The request.
    var method = Method.other
    var asksUpgrade = false
    var acceptsTrailers = false
    /// Whether request or response authenticate the connection to the origin, which then is for no
    /// other client.
    var authenticatesConnection = false
    var clientAddress = IPAddress.v4(0)
    /// What the client's address has used of its limits; `nil` where none apply to it.
    var addressEntry: AddressEntry?
    /// Whether the entry is held for this request alone.
    var holdsEntry = false
    /// Nanoseconds after which the address may go on.
    var addressWait: UInt64 = 0
    var upload = Upload.done
    /// Content that came whole with the head and waits to be sent with it.
    var arrived: [UInt8] = []
    var held: HeldBody?
    /// More came than can be held, and the client is only observed: what is held goes on unjudged.
    var releasesHeld = false
    /// The origin may leave the content unread and take it for another request: its connection
    /// carries this one last.
    var isolatesContent = false
    /// The origin was told `pass`.
    var toldPass = false
    /// The origin was given the head and not all of the content; its connection was reset.
    var wasCutShort = false
    var collected: [UInt8] = []
    var endpoint: Endpoint?
    /// How the content goes to the origin.
    var originFraming = BodyFraming.none
    /// The head for the origin; kept until the response begins, for a retry.
    var originHead: [UInt8]
    var isHeadOpen = false
    /// The digest that streamed content must have, and what it has so far.
    var expectedDigest: SHA256Digest?
    var digest = SHA256.Stream()
    var proof: Proof?
    var ruling = Ruling(.pass)
    var isEnforced = false
    /// Whether a verdict was reached.
    var isJudged = false

    // The origin's leg.
    /// Gets a connection; `nil` when that has ended.
    var dial: OriginDial?
    /// The server that was tried last, where none took a connection.
    var lastTried: OriginServer?
    var hasRetried = false
    /// Whether the origin was given content that can't be given again.
    var hasStreamed = false
    /// Bytes of the response's content so far.
    var responseCount: UInt64 = 0
    var hasResponse = false
    var isResponseComplete = false
    var status = 0

    // For the log and the metrics.
    var startedAt: UInt64 = 0
    var sentAt: UInt64 = 0
    var servedBy: (server: OriginServer, isReused: Bool)?
    var logMethod: [UInt8] = []
    var logHost: [UInt8] = []
    var logPath: [UInt8] = []
    var problem = ""
    /// Octets of content of an answer made here.
    var answeredBytes: UInt64 = 0

    init(_ proxy: ProxyLane, for client: any ClientStream) {
        self.proxy = proxy
        self.client = client
        settings = proxy.settings
        pools = proxy.pools
        rule = proxy.settings.rules.fallback
        originHead = proxy.takeHead()
    }

    /// Whether the request has not ended yet. What arrives later finds it over.
    var isUnderWay: Bool { client != nil }

    var lane: Lane { proxy.lane }

    /// Whether the client has sent all of the request.
    var isUploaded: Bool { if case .done = upload { true } else { false } }

    /// The request is over and its client's connection has been dealt with. Lets go of what others
    /// share; the rest goes with the exchange.
    private func end() {
        client = nil
        origin = nil
        // It is counted with the address: before that is let go.
        dropHeld()
        // A signature was verified, and nothing was admitted.
        if let proof, proof.isVerified { addFailure(now: MonotonicClock.nanoseconds) }
        proof = nil
        releaseAddress()
        proxy.giveBack(head: &originHead)
    }

    func dropHeld() {
        held?.release()
        held = nil
        arrived = []
    }

    /// The response is complete: the client's connection goes on or ends.
    func finish() {
        guard let client else { return }
        record()
        end()
        client.finish()
    }

    /// The response can't be completed: the client must see that.
    func cutOff() {
        guard let client else { return }
        record()
        releaseOrigin(reusable: false)
        end()
        client.reset()
    }

    func clientClosed(_ why: ClientEnd) {
        guard client != nil else { return }
        if why == .aborted { proxy.tally.add(.clientAborts) }
        if problem.isEmpty {
            switch why {
            case .aborted: problem = "client-aborted"
            case .tooSlow: problem = "client-timeout"
            case .drained: problem = "drain-timeout"
            }
        }
        record()
        releaseOrigin(reusable: false)
        end()
    }

    /// The client's connection has become a tunnel. Its line is written when that ends.
    func endAsTunnel() {
        count()
        end()
    }

    func releaseOrigin(reusable: Bool) {
        dial?.cancel()
        dial = nil
        guard let origin else { return }
        self.origin = nil
        // An end or octets that came with the response are no news for an idle connection.
        // RFC 9112 §8: an incomplete request must not look complete. Some servers run the
        // application on what came before an orderly end; none does after a reset.
        guard isSent(to: origin) else {
            if origin.isBusy { wasCutShort = true }
            return origin.reset()
        }
        origin.resetsOnClose = false
        let keeps = reusable && !isolatesContent && !authenticatesConnection && !proxy.isDraining
        origin.release(
            isReusable: keeps,
            idleTime: settings.timeouts.poolIdle,
            idleMax: settings.limits.pooledMax
        )
    }

    /// Whether a server has been sent all of the request.
    func isSent(to origin: OriginStream) -> Bool {
        if case .done = upload { origin.unsentBytes == 0 } else { false }
    }

    /// Whether all content is here and judged, and is to go or goes to a server.
    var isGivingWhole: Bool {
        let isUnsent = origin.map { !isSent(to: $0) } ?? (dial != nil)
        guard isUnsent, !hasResponse, !releasesHeld else { return false }
        return switch upload {
        case .replaying, .done: true
        case .waiting, .holding, .collecting, .streaming, .abandoned: false
        }
    }

    /// Whether an origin was given the head and will not be given all of the content.
    var isCutShort: Bool {
        if let origin, origin.isBusy, !isSent(to: origin) { return true }
        return wasCutShort
    }

    func drainBegan() {}

    func clientBroke() -> Bool {
        // What was verified whole arrives whole: nobody chooses where it ends by going away. That
        // the client is gone shows again when something is sent to it.
        !isGivingWhole
    }

    func contentReady() {
        switch upload {
        case .holding, .collecting, .streaming: pumpUpload()
        case .waiting, .replaying, .done, .abandoned: break
        }
    }

    func clientDrained() {
        guard let client else { return }
        client.expectNothing()
        if isReadingUpload { watchUpload() }
        origin?.resumeReading()
    }
}
