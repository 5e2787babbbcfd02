internal import CNGHTTP2

/// The server's end of an HTTP/2 connection.
///
/// It belongs to one event loop and is used from there only.
package final class HTTP2Session: HTTP2End {
    /// Whether the builder has heads, and memory for them.
    private enum BuiltHeads {
        case none
        case some
    }

    private let memory: HeadMemory
    @safe @exclusivity(unchecked) private var builtHeads = BuiltHeads.none
    @safe @exclusivity(unchecked) private(set) var channels = StreamTable<HTTP2Channel>()
    @safe @exclusivity(unchecked) private var news = ChannelNews<HTTP2Channel>()
    @safe @exclusivity(unchecked) var builder: RequestHeadBuilder
    @safe @exclusivity(unchecked) var ledger: HTTP2Ledger
    /// The newest stream that a head came for.
    @safe @exclusivity(unchecked) var newestHead: UInt32 = 0
    /// Bytes of the trailers that are under way, unpacked.
    @safe @exclusivity(unchecked) var trailerBytes = 0
    /// Streams that ended by the client's error, or were refused, since the driver last asked.
    private var errorsCount = 0
    /// Resets that were counted with their frames and that nghttp2 has still to send.
    private var countedBefore = 0
    /// Bytes of all channels that are still to be sent.
    package var unsentBytes: Int { waitingBytes }
    @safe @exclusivity(unchecked) private var waitingBytes = 0
    /// Whether the client knows that the gateway takes no more of its streams.
    @safe @exclusivity(unchecked) package private(set) var hasSaidGoAway = false

    /// A session that has SETTINGS to send.
    ///
    /// - nonce: random, and another one for each connection.
    /// - memory: the event loop's.
    package init(_ limits: HTTP2Limits, nonce: UInt64, memory: HeadMemory) throws(Fault) {
        self.memory = memory
        builder = RequestHeadBuilder(nonce: nonce)
        ledger = HTTP2Ledger(limits)
        super.init(limits, HTTP2FrameWalk())
        try unsafe begin(.server, settings) { callbacks in
            unsafe setReceivingCallbacks(callbacks)
            unsafe setSendingCallbacks(callbacks)
        }
    }

    private var settings: [nghttp2_settings_entry] {
        let headBytesMax = limits.head.headBytesMax
        return [
            NGHTTP2Session.setting(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streamsMax),
            NGHTTP2Session.setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.streamWindow),
            NGHTTP2Session.setting(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, headBytesMax),
            // RFC 8441 §3: WebSocket may come by extended CONNECT.
            NGHTTP2Session.setting(NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1),
            // RFC 9218 §2.1: the priority tree of RFC 7540 has cost servers more than it gave
            // clients.
            nghttp2_settings_entry(settings_id: 0x9, value: 1),
        ]
    }

    /// The session that calls back.
    static func of(_ userData: UnsafeMutableRawPointer?) -> HTTP2Session? {
        // `init` stored it, and it deletes the calling session before its own end.
        unsafe userData.map { unsafe Unmanaged<HTTP2Session>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: Notes that callbacks make

    func note(_ channel: HTTP2Channel) { news.note(channel) }

    func open(_ id: Int32) {
        channels.add(HTTP2Channel(id), as: id)
        if case .none = builtHeads { memory.lend(to: &builder) }
        builtHeads = .some
        builder.begin()
    }

    /// A stream was reset for an error of the client's.
    func provoked() {
        errorsCount += 1
        guard countedBefore == 0 else { return countedBefore -= 1 }
        clientErred()
    }

    /// A frame causes a reset of its stream. It counts when the frame comes, not when the reset is
    /// sent: one read can bring thousands.
    ///
    /// - Returns: the callback's answer; after an excess nghttp2 reads nothing more.
    func wasInvalid() -> Int32 {
        countedBefore += 1
        clientErred()
        return excess == nil ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
    }

    /// Counts an error of the client's with the resets that it provokes.
    package func clientErred() {
        do throws(HTTP2Excess) { try ledger.resetProvoked(now: now) } catch { note(error) }
    }

    func closed(_ channel: HTTP2Channel, _ code: UInt32) {
        channels.remove(channel.id)
        channel.closeCode = code
        // The heads of requests that the client gives up at once must not pile up.
        if let head = channel.head.take() { builder.forget(head) }
        forgetOutput(of: channel)
        note(channel)
    }

    /// Drops the bytes that wait to be sent.
    private func forgetOutput(of channel: HTTP2Channel) {
        waitingBytes -= channel.outgoingCount
        channel.forgetOutgoing()
    }

    func sent(_ count: Int, of channel: HTTP2Channel) {
        channel.outgoingStart += count
        channel.sentCount &+= UInt64(count)
        waitingBytes -= count
        guard channel.outgoingCount == 0 else { return }
        channel.forgetOutgoing()
        drained(channel)
    }

    /// All that waited is sent.
    func drained(_ channel: HTTP2Channel) {
        guard channel.isStalled else { return }
        channel.isStalled = false
        channel.isDrained = true
        note(channel)
    }

    func queued(_ count: Int) { waitingBytes += count }
}

// News.
extension HTTP2Session {
    package var hasNews: Bool { !news.isEmpty }

    package func nextNews() -> HTTP2Channel? { news.next() }

    /// Puts a channel among the news again.
    package func remind(_ channel: HTTP2Channel) { note(channel) }

    /// The heads that were built; see ``takeHead(of:)``.
    package var heads: [UInt8] { builder.bytes }

    /// Takes a channel's head: where it is among ``heads``, or why it is malformed.
    package func takeHead(of channel: HTTP2Channel) -> RequestHeadBuilder.Built? {
        channel.head.take()
    }

    /// A head has begun to come and not ended.
    package var isMidHead: Bool { walk.isMidFields }

    /// The driver has taken all heads: another connection may use their memory.
    package func forgetHeads() {
        guard case .some = builtHeads else { return }
        guard !isMidHead else { return builder.forgetTaken() }
        builtHeads = .none
        memory.takeBack(from: &builder)
    }

    /// Streams that ended by an error of the client's since the last call.
    package func takeErrorsCount() -> Int {
        defer { errorsCount = 0 }
        return errorsCount
    }

    /// Whether more bytes wait for the client's windows than the limit allows.
    package var unsentBytesExceed: Bool { unsentBytes > limits.unsentBytesMax }

    /// How many bytes more the windows of a stream and the connection let out, after those that
    /// wait on all streams; at most half of the limit. 0 when a window is closed.
    package func room(for channel: HTTP2Channel) -> Int {
        let windows = min(window(of: channel), openWindow)
        return max(min(windows, limits.unsentBytesMax / 2) - unsentBytes, 0)
    }

    /// Whether the windows of a stream and the connection let out all that waits on the stream.
    package func isOpen(for channel: HTTP2Channel) -> Bool {
        channel.outgoingCount <= min(window(of: channel), openWindow)
    }

    package var openCount: Int { channels.count }

    package var openChannels: [HTTP2Channel] { channels.channels }
}

// Endings.
extension HTTP2Session {
    /// Tells the client that the connection will end, so that it opens no more streams (RFC 9113
    /// §6.8). Streams on their way are still served.
    package func announceEnd() { unsafe nghttp2_submit_shutdown_notice(pointer) }

    /// Tells the client which stream is the last one served.
    package func sayGoAway() {
        guard !hasSaidGoAway else { return }
        hasSaidGoAway = true
        let last = unsafe nghttp2_session_get_last_proc_stream_id(pointer)
        let (none, code) = (NGHTTP2Session.noFlags, HTTP2Code.noError.rawValue)
        unsafe nghttp2_submit_goaway(pointer, none, last, code, nil, 0)
    }

    /// Ends the connection: the next bytes are the last.
    package func terminate(_ code: HTTP2Code) {
        hasSaidGoAway = true
        unsafe nghttp2_session_terminate_session(pointer, code.rawValue)
    }

    /// Ends a stream. Its waiting bytes are dropped now, since the frame itself may wait for the
    /// socket.
    package func reset(_ channel: HTTP2Channel, _ code: HTTP2Code) {
        guard !channel.isClosed else { return }
        channel.isResetByUs = true
        forgetOutput(of: channel)
        submitReset(of: channel, code)
    }

    /// Refuses a stream that has not begun; its client may repeat it (RFC 9113 §8.7). The client
    /// has provoked it, so it counts.
    package func refuse(_ channel: HTTP2Channel) {
        guard !channel.isClosed else { return }
        submitReset(of: channel, .refusedStream)
    }
}

/// Codes of RFC 9113 §7 that the gateway uses.
package enum HTTP2Code: UInt32, Sendable {
    case noError = 0x0
    case protocolError = 0x1
    case internalError = 0x2
    case refusedStream = 0x7
    case cancel = 0x8
    case enhanceYourCalm = 0xB
}
