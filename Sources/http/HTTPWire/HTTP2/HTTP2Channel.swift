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
