/// A stream of a session: its request and its response.
package final class HTTP2Channel: HTTP2StreamChannel {
    // MARK: The request

    /// The head, until the driver has taken it.
    @safe @exclusivity(unchecked) var head: RequestHeadBuilder.Built?
    /// Why the stream was closed, a code of RFC 9113 §7.
    @safe @exclusivity(unchecked) package internal(set) var closeCode: UInt32?
    /// The request's scheme is https.
    @safe @exclusivity(unchecked) package internal(set) var isHTTPS = false

    /// The client asks for WebSocket by extended CONNECT (RFC 8441).
    @safe @exclusivity(unchecked) package internal(set) var asksTunnel = false

    // MARK: The response

    /// Bytes pass in both directions, each until its own end.
    @safe @exclusivity(unchecked) var isTunnel = false
    /// Bytes of content that were sent.
    @safe @exclusivity(unchecked) package internal(set) var sentCount: UInt64 = 0
    @safe @exclusivity(unchecked) package internal(set) var isOutputComplete = false
    @safe @exclusivity(unchecked) var trailers: TrailerSection?
    /// The final head was submitted.
    @safe @exclusivity(unchecked) package internal(set) var hasResponded = false
    /// The response ends with a frame of content.
    @safe @exclusivity(unchecked) var endsWithContent = false
    /// The last byte was handed over.
    package internal(set) var isOutputSent: Bool {
        get { outputWasSent }
        set { outputWasSent = newValue }
    }
    private var outputWasSent = false
    /// The reset is ours, not an answer to an error.
    @safe @exclusivity(unchecked) var isResetByUs = false

    package var isClosed: Bool { closeCode != nil }
    /// Both directions of a tunnel have ended. What came before the client's end may still be here.
    package var hasEndedTunnel: Bool { isTunnel && isInputEnded && closeCode == 0 }
    package var hasHead: Bool { head != nil }
    /// Whether bytes wait to be sent, or the end of content: nghttp2 sends that as an empty frame,
    /// which waits until the windows are open.
    package var hasOutgoing: Bool {
        outgoingCount > 0
            || endsWithContent && isOutputComplete && !isOutputSent && !isResetByUs
    }
}

/// A stream of a client's session: the request that goes out, and the response that comes.
package final class HTTP2ClientChannel: HTTP2StreamChannel {
    let isHead: Bool
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

    @safe @exclusivity(unchecked) var output = Output.open
    /// The head was handed over.
    @safe @exclusivity(unchecked) package internal(set) var isHeadSent = false
    /// By which of the session's calls for bytes.
    var headBatch: UInt64 = 0

    // MARK: The response

    /// The most bytes of heads that wait for the driver, counted as one head: interim ones cost a
    /// server a byte each.
    static let headsMax = 32

    /// Heads that the driver has not taken. The final one is the last.
    @safe @exclusivity(unchecked) var heads: [ResponseHeadBuilder.Built] = []
    @safe @exclusivity(unchecked) var headsBytes = 0
    /// The final head has come. Fields that come later are trailers.
    @safe @exclusivity(unchecked) var hasFinalHead = false
    /// The section after the content.
    @safe @exclusivity(unchecked) package internal(set) var trailers: ResponseHeadBuilder.Built?

    init(_ id: Int32, isHead: Bool) {
        self.isHead = isHead
        super.init(id)
    }

    /// A head waits for the driver.
    package var hasHead: Bool { !heads.isEmpty }
    /// Whether all that was added was handed over.
    package var isClear: Bool { isHeadSent && outgoingCount == 0 }
    /// Whether all content of the request is here, and its end was not handed over.
    package var isOutputComplete: Bool { if case .complete = output { true } else { false } }
    /// Whether all of the request was handed over.
    package var isOutputSent: Bool { if case .sent = output { true } else { false } }

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
    @safe @exclusivity(unchecked) private var spare = RequestHeadBuilder(nonce: 0)

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
