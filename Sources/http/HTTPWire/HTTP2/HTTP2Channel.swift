/// A stream of a session: its request and its response.
package final class HTTP2Channel: NotedChannel {
    package let id: Int32
    /// The driver's object for the stream; it gets the news. `nil` before the head is complete, and
    /// when the driver has released the stream.
    package var owner: (any HTTP2ChannelOwner)? {
        get { driver }
        set { driver = newValue }
    }
    private var driver: (any HTTP2ChannelOwner)?

    // MARK: The request

    /// The head, until the driver has taken it.
    @exclusivity(unchecked) var head: RequestHeadBuilder.Built?
    /// Content that came and that the driver has not taken.
    @exclusivity(unchecked) var inbox: [UInt8] = []
    /// The client has sent its last byte.
    package internal(set) var isInputEnded: Bool {
        get { inputHasEnded }
        set { inputHasEnded = newValue }
    }
    private var inputHasEnded = false
    /// Why the stream was closed, a code of RFC 9113 §7.
    @exclusivity(unchecked) package internal(set) var closeCode: UInt32?
    /// The channel waits among the session's news.
    @exclusivity(unchecked) var isNoted = false
    /// The request's scheme is https.
    @exclusivity(unchecked) package internal(set) var isHTTPS = false

    /// The client asks for WebSocket by extended CONNECT (RFC 8441).
    @exclusivity(unchecked) package internal(set) var asksTunnel = false

    // MARK: The response

    /// Bytes pass in both directions, each until its own end.
    @exclusivity(unchecked) var isTunnel = false
    /// Content that is to be sent, from `outgoingStart` on.
    @exclusivity(unchecked) var outgoing: [UInt8] = []
    @exclusivity(unchecked) var outgoingStart = 0
    /// Bytes of content that were sent.
    @exclusivity(unchecked) package internal(set) var sentCount: UInt64 = 0
    @exclusivity(unchecked) package internal(set) var isOutputComplete = false
    @exclusivity(unchecked) var trailers: TrailerSection?
    /// nghttp2 waits until there is more.
    @exclusivity(unchecked) var isDeferred = false
    /// The final head was submitted.
    @exclusivity(unchecked) package internal(set) var hasResponded = false
    /// The response ends with a frame of content.
    @exclusivity(unchecked) var endsWithContent = false
    /// The last byte was handed over.
    package internal(set) var isOutputSent: Bool {
        get { outputWasSent }
        set { outputWasSent = newValue }
    }
    private var outputWasSent = false
    /// The client has got all that waited when the owner learned that bytes wait.
    @exclusivity(unchecked) var isDrained = false
    /// The owner knows that bytes wait.
    package var isStalled: Bool {
        get { ownerWaits }
        set { ownerWaits = newValue }
    }
    private var ownerWaits = false
    /// The reset is ours, not an answer to an error.
    @exclusivity(unchecked) var isResetByUs = false

    init(_ id: Int32) { self.id = id }

    package var isClosed: Bool { closeCode != nil }
    /// Both directions of a tunnel have ended. What came before the client's end may still be here.
    package var hasEndedTunnel: Bool { isTunnel && isInputEnded && closeCode == 0 }
    package var hasHead: Bool { head != nil }
    /// Bytes of content that the driver has not taken.
    package var inboxCount: Int { inbox.count }
    /// Whether all that waited is sent. The answer is `true` once.
    package func takeDrained() -> Bool {
        defer { isDrained = false }
        return isDrained
    }
    /// Bytes that wait to be sent.
    package var outgoingCount: Int { outgoing.count - outgoingStart }
    /// Whether bytes wait to be sent, or the end of content: nghttp2 sends that as an empty frame,
    /// which waits until the windows are open.
    package var hasOutgoing: Bool {
        outgoingCount > 0
            || endsWithContent && isOutputComplete && !isOutputSent && !isResetByUs
    }
}

/// A stream of a client's session: the request that goes out, and the response that comes.
package final class HTTP2ClientChannel: NotedChannel {
    package let id: Int32
    /// The driver's object for the stream; it gets the news. `nil` when the driver has released the
    /// stream.
    package var owner: (any HTTP2ChannelOwner)? {
        get { driver }
        set { driver = newValue }
    }
    private var driver: (any HTTP2ChannelOwner)?
    let isHead: Bool
    /// The channel waits among the session's news.
    @exclusivity(unchecked) var isNoted = false
    /// How the stream ended; `nil` while it is open.
    package internal(set) var end: HTTP2StreamEnd? {
        get { knownEnd }
        set { knownEnd = newValue }
    }
    private var knownEnd: HTTP2StreamEnd?

    // MARK: The request

    /// How far the request is.
    enum Output {
        /// More content may be added. Leaves to `complete`.
        case open
        /// All content is here. Leaves to `sent`.
        case complete
        /// The last byte was handed over.
        case sent
    }

    @exclusivity(unchecked) var output = Output.open
    /// The head was handed over.
    @exclusivity(unchecked) package internal(set) var isHeadSent = false
    /// By which of the session's calls for bytes.
    var headBatch: UInt64 = 0
    /// Content that is to be sent, from `outgoingStart` on.
    @exclusivity(unchecked) var outgoing: [UInt8] = []
    @exclusivity(unchecked) var outgoingStart = 0
    /// nghttp2 waits until there is more.
    var isDeferred = false
    /// The owner knows that bytes wait, and wants to know when they are sent.
    @exclusivity(unchecked) package var isStalled = false
    /// They are sent.
    @exclusivity(unchecked) var isDrained = false

    // MARK: The response

    /// The most bytes of heads that wait for the driver, counted as one head: interim ones cost a
    /// server a byte each.
    static let headsMax = 32

    /// Heads that the driver has not taken. The final one is the last.
    @exclusivity(unchecked) var heads: [ResponseHeadBuilder.Built] = []
    @exclusivity(unchecked) var headsBytes = 0
    /// The final head has come. Fields that come later are trailers.
    @exclusivity(unchecked) var hasFinalHead = false
    /// Content that came and that the driver has not taken.
    @exclusivity(unchecked) var inbox: [UInt8] = []
    /// The section after the content.
    @exclusivity(unchecked) package internal(set) var trailers: ResponseHeadBuilder.Built?
    /// The server has sent its last byte.
    package internal(set) var isInputEnded: Bool {
        get { inputHasEnded }
        set { inputHasEnded = newValue }
    }
    private var inputHasEnded = false

    init(_ id: Int32, isHead: Bool) {
        self.id = id
        self.isHead = isHead
    }

    /// Bytes of content that the driver has not taken.
    package var inboxCount: Int { inbox.count }
    /// A head waits for the driver.
    package var hasHead: Bool { !heads.isEmpty }
    /// Bytes of content that wait to be sent.
    package var outgoingCount: Int { outgoing.count - outgoingStart }
    /// Whether all that was added was handed over.
    package var isClear: Bool { isHeadSent && outgoingCount == 0 }
    /// Whether all content of the request is here, and its end was not handed over.
    package var isOutputComplete: Bool { if case .complete = output { true } else { false } }
    /// Whether all of the request was handed over.
    package var isOutputSent: Bool { if case .sent = output { true } else { false } }

    /// Whether all that waited is sent. The answer is `true` once.
    package func takeDrained() -> Bool {
        defer { isDrained = false }
        return isDrained
    }

    package func takeHead() -> ResponseHeadBuilder.Built? {
        guard let head = heads.first else { return nil }
        // Most responses have one head, and then the array's memory is of no more use.
        if heads.count == 1 { heads = [] } else { heads.removeFirst() }
        headsBytes -= head.bytes.count
        return head
    }

    func took(_ head: ResponseHeadBuilder.Built, _ limits: HeadLimits) {
        guard !hasFinalHead else { return }
        hasFinalHead = !head.isInterim
        headsBytes += head.bytes.count
        guard heads.count < Self.headsMax, headsBytes <= 2 * limits.headBytesMax else {
            heads = [ResponseHeadBuilder.Built(bytes: [], fault: .headTooLong)]
            headsBytes = 0
            hasFinalHead = true
            return
        }
        heads.append(head)
    }
}

/// How a stream to a server ended.
package enum HTTP2StreamEnd: Equatable, Sendable {
    /// Both directions were complete.
    case inOrder
    /// The server has not processed the request, and says so: REFUSED_STREAM, or GOAWAY with an
    /// older stream (RFC 9113 §8.7). Or the server never got it.
    case refused
    /// The server has reset it, with this code of RFC 9113 §7.
    case reset(UInt32)
    /// The server broke the rules of HTTP/2 on it.
    case invalid
    /// The connection ended.
    case lost
}

/// The driver's object for a channel.
package protocol HTTP2ChannelOwner: AnyObject {
    /// Content or its end came, what waited was sent, or the stream was closed.
    func channelChanged()
}

/// Memory in which heads are built. An event loop lends it to one connection at a time, since most
/// connections are idle and must keep none. A connection has memory of its own while another one is
/// in the middle of a head.
package final class HeadMemory {
    /// Where the memory is.
    private enum Place {
        case here
        case lent
    }

    /// The most bytes of heads for which memory is kept.
    private static let keptMax = 64 << 10

    private var place = Place.here
    @exclusivity(unchecked) private var spare = RequestHeadBuilder(nonce: 0)

    package init() {}

    /// Gives the memory to a builder that has none, unless it is lent.
    func lend(to builder: inout RequestHeadBuilder) {
        guard case .here = place else { return }
        place = .lent
        builder.exchangeMemory(with: &spare)
    }

    /// Takes the memory of a builder without heads. It may come from any builder.
    func takeBack(from builder: inout RequestHeadBuilder) {
        guard case .lent = place, builder.capacity <= Self.keptMax else {
            return builder.forgetAll()
        }
        place = .here
        builder.empty()
        builder.exchangeMemory(with: &spare)
    }
}
