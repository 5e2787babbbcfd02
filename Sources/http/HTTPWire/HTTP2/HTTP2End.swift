internal import CNGHTTP2

/// What both ends of an HTTP/2 connection have: nghttp2's session, the bytes that it reads and
/// writes, and the frames of content.
///
/// All members are final, so that no call is looked up.
///
/// Why what is `unsafe` here and in both ends holds: ``pointer`` is a session of nghttp2's from
/// `begin` to `deinit`. Callbacks get this object, which deletes the session, so none comes after
/// its end. What they are given, and what nghttp2 lends, lives for the call. Members are `@safe`:
/// one event loop uses an end, and no call reaches a member while it is changed.
@safe package class HTTP2End {
    /// Why a connection can't go on.
    package enum Fault: Error, Equatable {
        /// The first bytes of a client are not HTTP/2's.
        case badPreface
        /// The peer has exceeded a limit of the connection.
        case excess(HTTP2Excess)
        /// The library failed, usually because memory was short.
        case library(Int32)
    }

    final let limits: HTTP2Limits
    /// The `nghttp2_session`; ours from `begin` to `deinit`.
    final private(set) var pointer: OpaquePointer?
    /// Where frames begin.
    @safe @exclusivity(unchecked) final var walk: HTTP2FrameWalk
    /// A limit that a callback found exceeded.
    @safe @exclusivity(unchecked) final private(set) var excess: HTTP2Excess?
    /// Where frames of content are written while nghttp2 is at work.
    @safe @exclusivity(unchecked) final var output: [UInt8] = []
    /// The count of bytes in ``output`` from which on nghttp2 rests.
    @safe @exclusivity(unchecked) final var outputMax = 0
    /// The driver's time at its last call, in milliseconds.
    @safe @exclusivity(unchecked) final var now: UInt64 = 0

    init(_ limits: HTTP2Limits, _ walk: HTTP2FrameWalk) {
        self.limits = limits
        self.walk = walk
    }

    /// Makes nghttp2's session, which has SETTINGS to send.
    ///
    /// - set: sets the callbacks.
    final func begin(
        _ end: NGHTTP2Session.End,
        _ settings: [nghttp2_settings_entry],
        set: (OpaquePointer) -> Void
    ) throws(Fault) {
        do throws(NGHTTP2Session.Failure) {
            let made = try unsafe NGHTTP2Session.make(end, for: self, set)
            unsafe pointer = unsafe made
            try unsafe NGHTTP2Session.begin(made, settings, window: limits.connectionWindow)
        } catch {
            throw .library(error.code)
        }
    }

    deinit { unsafe nghttp2_session_del(pointer) }

    final func note(_ excess: HTTP2Excess) { if self.excess == nil { self.excess = excess } }

    /// The limit that a callback found exceeded since the last call.
    package final func takeExcess() -> HTTP2Excess? { excess.take() }

    /// Whether there may be bytes for the peer. Cheap, and mostly there are none.
    package final var mayHaveOutput: Bool {
        // After the end of the session nghttp2 wants neither, whatever it still has.
        unsafe nghttp2_session_want_write(pointer) != 0 || nghttp2_session_want_read(pointer) == 0
    }

    /// Whether the connection has nothing more to send or receive.
    package final var isOver: Bool {
        unsafe nghttp2_session_want_read(pointer) == 0 && nghttp2_session_want_write(pointer) == 0
    }

    /// Has nghttp2 read the peer's bytes; below 0 where it fails.
    final func read(_ bytes: Span<UInt8>) -> Int {
        // The pointer lives for the call, and nghttp2 keeps no copy of it.
        unsafe bytes.withUnsafeBufferPointer {
            unsafe nghttp2_session_mem_recv(pointer, $0.baseAddress, $0.count)
        }
    }

    /// Takes bytes for the peer, until there are none or about `max`.
    final func fill(_ bytes: inout [UInt8], atMost max: Int, now: UInt64) throws(Fault) {
        self.now = now
        outputMax = max
        swap(&bytes, &output)
        defer { swap(&bytes, &output) }
        while output.count < max {
            var piece: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(pointer, &piece)
            guard count >= 0 else { throw .library(Int32(clamping: count)) }
            // Frames of content were appended by a callback.
            guard count > 0 else { break }
            // nghttp2 keeps the piece until the next call.
            unsafe output.append(contentsOf: UnsafeBufferPointer(start: piece, count: count))
        }
    }

    final func submitReset(of channel: HTTP2StreamChannel, _ code: HTTP2Code) {
        unsafe nghttp2_submit_rst_stream(pointer, NGHTTP2Session.noFlags, channel.id, code.rawValue)
    }

    // MARK: Content

    /// Adds content that is to be sent.
    final func add(_ content: Span<UInt8>, to channel: HTTP2StreamChannel) {
        // The pointer lives for the call, and the copy is made inside it.
        unsafe content.withUnsafeBufferPointer { unsafe channel.outgoing.append(contentsOf: $0) }
        goOn(channel)
    }

    /// There is more to send on a stream.
    final func goOn(_ channel: HTTP2StreamChannel) {
        guard channel.isDeferred else { return }
        channel.isDeferred = false
        unsafe nghttp2_session_resume_data(pointer, channel.id)
    }

    /// Content that the peer takes on a stream; below 0 after it has made all windows smaller
    /// (RFC 9113 §6.9.2).
    final func window(of channel: HTTP2StreamChannel) -> Int {
        unsafe Int(nghttp2_session_get_stream_remote_window_size(pointer, channel.id))
    }

    /// Content that the peer takes on all streams together.
    final var openWindow: Int { unsafe Int(nghttp2_session_get_remote_window_size(pointer)) }

    /// The number of bytes of the next frame of content.
    ///
    /// - isComplete: whether no more content is to come.
    final func nextContent(
        of channel: HTTP2StreamChannel,
        isComplete: Bool,
        atMost max: Int,
        _ flags: inout UInt32
    ) -> Int {
        let count = min(max, channel.outgoingCount)
        if count == 0, !isComplete {
            channel.isDeferred = true
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        flags |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue
        if count == channel.outgoingCount, isComplete { flags |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return count
    }

    /// Writes the content of a frame, whose head is written.
    ///
    /// - Returns: the number of bytes.
    final func write(_ count: Int, of channel: HTTP2StreamChannel) -> Int {
        let start = channel.outgoingStart
        // `nextContent` saw that there are enough.
        let end = min(start + count, channel.outgoing.count)
        output.append(contentsOf: channel.outgoing[start..<end])
        return end - start
    }
}

/// What both ends keep for a stream: the driver's object, and content in both directions. It is
/// among its connection's news once at most.
package class HTTP2StreamChannel {
    package final let id: Int32
    /// The driver's object for the stream; it gets the news. `nil` before a request's head is
    /// complete, and when the driver has released the stream.
    package final var owner: (any HTTP2ChannelOwner)? {
        get { driver }
        set { driver = newValue }
    }
    private final var driver: (any HTTP2ChannelOwner)?
    /// The channel waits among the session's news.
    @safe @exclusivity(unchecked) final var isNoted = false

    /// Content that came and that the driver has not taken.
    @safe @exclusivity(unchecked) final var inbox: [UInt8] = []
    /// The peer has sent its last byte.
    @safe @exclusivity(unchecked) package final internal(set) var isInputEnded = false

    /// Content that is to be sent, from `outgoingStart` on.
    @safe @exclusivity(unchecked) final var outgoing: [UInt8] = []
    @safe @exclusivity(unchecked) final var outgoingStart = 0
    /// nghttp2 waits until there is more.
    @safe @exclusivity(unchecked) final var isDeferred = false
    /// The owner knows that bytes wait, and wants to know when they are sent.
    @safe @exclusivity(unchecked) package final var isStalled = false
    /// They are sent.
    @safe @exclusivity(unchecked) final var isDrained = false

    init(_ id: Int32) { self.id = id }

    /// Bytes of content that the driver has not taken.
    package final var inboxCount: Int { inbox.count }
    /// Bytes of content that wait to be sent.
    package final var outgoingCount: Int { outgoing.count - outgoingStart }

    /// Whether all that waited is sent. The answer is `true` once.
    package final func takeDrained() -> Bool {
        defer { isDrained = false }
        return isDrained
    }

    /// Drops the content that is to be sent.
    final func forgetOutgoing() {
        outgoing = []
        outgoingStart = 0
    }

    /// Takes at most this number of bytes of content.
    final func take(atMost max: Int) -> [UInt8] {
        guard inbox.count > max else {
            var taken: [UInt8] = []
            swap(&taken, &inbox)
            return taken
        }
        let taken = Array(inbox.prefix(max))
        inbox.removeFirst(max)
        return taken
    }
}

/// The driver's object for a channel.
package protocol HTTP2ChannelOwner: AnyObject {
    /// Content or its end came, what waited was sent, or the stream was closed.
    func channelChanged()
}
