internal import CNGHTTP2

/// The client's end of an HTTP/2 connection: requests out, responses in.
///
/// It belongs to one event loop and is used from there only. For the callbacks see
/// HTTP2Limits.swift.
package final class HTTP2ClientSession: HTTP2End {
    /// The relation to the server.
    package enum Standing: Equatable {
        /// The server's SETTINGS have not come. Leaves to `open`, `violated`.
        case greeting
        /// Leaves to `leaving`, `violated`.
        case open
        /// No more requests begin: the server takes none (GOAWAY), or all numbers of streams are
        /// used. Leaves to `violated`.
        case leaving
        /// The server broke the rules of HTTP/2: the connection ends.
        case violated
    }

    private let scheme: StaticString
    @safe @exclusivity(unchecked) private(set) var channels = StreamTable<HTTP2ClientChannel>()
    @safe @exclusivity(unchecked) private var news = ChannelNews<HTTP2ClientChannel>()
    package var standing: Standing { relation }
    private var relation = Standing.greeting
    @safe @exclusivity(unchecked) private var builder = ResponseHeadBuilder()
    @safe @exclusivity(unchecked) private var ledger: HTTP2ServerLedger
    /// How often the driver has asked for bytes.
    private var batch: UInt64 = 0
    /// Bytes of content that came since the last call, and that are still to be acknowledged.
    @safe @exclusivity(unchecked) private var unconsumed = 0
    /// Pings without an answer.
    private var pingsOpen = 0
    /// What came and went since the driver last asked.
    private var counts = Counts()

    /// Frames that end streams and the connection.
    package struct Counts {
        package fileprivate(set) var resetsReceived = 0
        package fileprivate(set) var resetsSent = 0
        package fileprivate(set) var goAways = 0
    }

    /// A session that has the preface and SETTINGS to send.
    ///
    /// - limits: those of what the server may send.
    package init(_ limits: HTTP2Limits, isSecure: Bool) throws(Fault) {
        scheme = isSecure ? "https" : "http"
        ledger = HTTP2ServerLedger(limits)
        super.init(limits, HTTP2FrameWalk(preface: 0))
        let headBytesMax = limits.head.headBytesMax
        let settings = [
            NGHTTP2Session.setting(NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
            NGHTTP2Session.setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.streamWindow),
            NGHTTP2Session.setting(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, headBytesMax),
        ]
        try unsafe begin(.client, settings) { callbacks in
            unsafe setReceivingCallbacks(callbacks)
            unsafe setSendingCallbacks(callbacks)
        }
    }

    /// The session that calls back.
    private static func of(_ userData: UnsafeMutableRawPointer?) -> HTTP2ClientSession? {
        // `init` stored it, and it deletes the calling session before its own end.
        unsafe userData.map {
            unsafe Unmanaged<HTTP2ClientSession>.fromOpaque($0).takeUnretainedValue()
        }
    }

    private func note(_ channel: HTTP2ClientChannel) { news.note(channel) }
}

// What the driver asks.
extension HTTP2ClientSession {
    package var hasNews: Bool { !news.isEmpty }

    package var newsCount: Int { news.count }

    package func nextNews() -> HTTP2ClientChannel? { news.next() }

    /// Puts a channel among the news again.
    package func remind(_ channel: HTTP2ClientChannel) { note(channel) }

    package var openCount: Int { channels.count }

    package var openChannels: [HTTP2ClientChannel] { channels.channels }

    /// How many streams may be open at once: the smaller of both limits.
    package var streamsMax: Int {
        let theirs = unsafe nghttp2_session_get_remote_settings(
            pointer,
            NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS
        )
        return min(limits.streamsMax, Int(theirs))
    }

    /// Whether another request may begin now.
    package var hasRoom: Bool { mayContinue && openCount < streamsMax }

    /// Whether another request may begin, now or when a stream has ended.
    package var mayContinue: Bool {
        unsafe standing == .open && nghttp2_session_check_request_allowed(pointer) != 0
    }

    /// Whether a ping was sent that the server has not answered.
    package var awaitsPong: Bool { pingsOpen > 0 }

    /// Asks the server whether it still answers.
    package func ping() {
        guard pingsOpen == 0 else { return }
        pingsOpen = 1
        unsafe nghttp2_submit_ping(pointer, NGHTTP2Session.noFlags, nil)
    }

    /// Ends the connection: the next bytes are the last.
    package func terminate(_ code: HTTP2Code) {
        unsafe nghttp2_session_terminate_session(pointer, code.rawValue)
    }

    /// Whether the head of a request was among the bytes that were handed over last.
    package func handedOverLast(_ channel: HTTP2ClientChannel) -> Bool {
        channel.isHeadSent && channel.headBatch == batch
    }

    /// Whether no byte of a request went out.
    ///
    /// - isUnsent: whether none of the bytes that were handed over last went out.
    package func hasSentNothing(of channel: HTTP2ClientChannel, isUnsent: Bool) -> Bool {
        !channel.isHeadSent || isUnsent && handedOverLast(channel)
    }

    /// The connection has ended: no stream gets or sends anything more.
    ///
    /// - isUnsent: whether none of the bytes that were handed over last went out.
    package func abandon(isUnsent: Bool = false) {
        for channel in openChannels {
            let isUntouched = hasSentNothing(of: channel, isUnsent: isUnsent)
            closed(channel, isUntouched ? .refused : .lost)
        }
    }
}

// Requests.
extension HTTP2ClientSession {
    /// Begins a request with a head in HTTP/1.1's form, and the content that stands after it. More
    /// follows with ``append(_:to:)`` unless there is none.
    ///
    /// - isHead: its method is HEAD.
    /// - Returns: `nil` where the session takes no more requests.
    package func begin(
        _ bytes: Span<UInt8>,
        isHead: Bool,
        hasContent: Bool
    ) -> HTTP2ClientChannel? {
        var provider = unsafe nghttp2_data_provider()
        unsafe provider.read_callback = { _, id, _, length, flags, _, me in
            guard let session = unsafe HTTP2ClientSession.of(me), let flags = unsafe flags else {
                return 0
            }
            return unsafe session.nextContent(of: id, atMost: length, &flags.pointee)
        }
        let begun = unsafe NGHTTP2Fields.with(request: bytes, scheme: scheme) { fields in
            unsafe withUnsafePointer(to: provider) { provider in
                unsafe nghttp2_submit_request(
                    pointer,
                    nil,
                    fields.baseAddress,
                    fields.count,
                    hasContent ? provider : nil,
                    nil
                )
            }
        }
        guard let (id, headEnd) = begun, id > 0 else { return nil }
        // A connection whose numbers are used must make room for another one.
        if standing == .open, !mayContinue { relation = .leaving }
        let channel = HTTP2ClientChannel(id, isHead: isHead)
        channels.add(channel, as: id)
        if hasContent {
            append(bytes.extracting(headEnd...), to: channel)
        } else {
            channel.output = .complete
        }
        return channel
    }

    /// Adds content to a request.
    package func append(_ content: Span<UInt8>, to channel: HTTP2ClientChannel) {
        guard channel.end == nil, case .open = channel.output, !content.isEmpty else { return }
        add(content, to: channel)
    }

    /// The request's content is complete. Without this call the server sees no end of it.
    package func complete(_ channel: HTTP2ClientChannel) {
        guard channel.end == nil, case .open = channel.output else { return }
        channel.output = .complete
        goOn(channel)
    }

    /// Whether the windows of a stream and the connection let out all that waits on the stream.
    package func isOpen(for channel: HTTP2ClientChannel) -> Bool {
        let own =
            unsafe channel.isHeadSent
            ? window(of: channel)
            // nghttp2 opens the stream with its head.
            : Int(
                nghttp2_session_get_remote_settings(
                    pointer,
                    NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE
                )
            )
        return channel.outgoingCount <= min(own, openWindow)
    }

    /// The counts since the last call.
    package func takeCounts() -> Counts {
        defer { counts = Counts() }
        return counts
    }

    /// Ends a stream; the server can't take its content for whole. The driver has released it.
    package func reset(_ channel: HTTP2ClientChannel, _ code: HTTP2Code) {
        channel.owner = nil
        guard channel.end == nil else { return }
        closed(channel, .reset(code.rawValue))
        counts.resetsSent += 1
        submitReset(of: channel, code)
    }

    private func closed(_ channel: HTTP2ClientChannel, _ end: HTTP2StreamEnd) {
        channels.remove(channel.id)
        channel.end = end
        channel.forgetOutgoing()
        note(channel)
    }

    /// Takes bytes for the server, until there are none or about `max`.
    package func send(into bytes: inout [UInt8], atMost max: Int, now: UInt64) throws(Fault) {
        batch &+= 1
        try fill(&bytes, atMost: max, now: now)
    }

    // MARK: Callbacks

    private func setSendingCallbacks(_ callbacks: OpaquePointer) {
        unsafe nghttp2_session_callbacks_set_send_data_callback(callbacks) {
            _,
            frame,
            head,
            count,
            _,
            me in
            guard let session = unsafe HTTP2ClientSession.of(me), let frame = unsafe frame,
                let head = unsafe head
            else { return 0 }
            unsafe session.sendContent(
                of: frame.pointee.hd.stream_id,
                // nghttp2 vouches for nine bytes (RFC 9113 §4.1).
                UnsafeBufferPointer(start: head, count: 9),
                count
            )
            // Otherwise nghttp2 goes on while any stream has content.
            let isEnough = session.output.count >= session.outputMax
            return isEnough ? NGHTTP2_ERR_PAUSE.rawValue : 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, me in
            guard let session = unsafe HTTP2ClientSession.of(me), let frame = unsafe frame?.pointee
            else {
                return 0
            }
            unsafe session.sent(frame)
            return 0
        }
    }

    private func sent(_ frame: nghttp2_frame) {
        let channel = unsafe channels[frame.hd.stream_id]
        let isLast = unsafe UInt32(frame.hd.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
        switch unsafe UInt32(frame.hd.type) {
        case NGHTTP2_HEADERS.rawValue:
            guard let channel else { return }
            channel.isHeadSent = true
            channel.headBatch = batch
            ledger.frameSent()
            if isLast { channel.output = .sent }
            drained(channel)
        case NGHTTP2_DATA.rawValue:
            guard let channel, isLast else { return }
            channel.output = .sent
        // The driver's own resets are of streams that it has released.
        case NGHTTP2_RST_STREAM.rawValue: if let channel { closed(channel, .invalid) }
        case NGHTTP2_GOAWAY.rawValue:
            if unsafe frame.goaway.error_code != NGHTTP2_NO_ERROR.rawValue { relation = .violated }
        default: break
        }
    }

    /// The number of bytes of the next frame of content.
    private func nextContent(of id: Int32, atMost max: Int, _ flags: inout UInt32) -> Int {
        guard let channel = channels[id] else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let isComplete = if case .complete = channel.output { true } else { false }
        return nextContent(of: channel, isComplete: isComplete, atMost: max, &flags)
    }

    private func sendContent(of id: Int32, _ head: UnsafeBufferPointer<UInt8>, _ count: Int) {
        unsafe output.append(contentsOf: head)
        guard let channel = channels[id], count > 0 else { return }
        channel.outgoingStart += write(count, of: channel)
        ledger.frameSent()
        drained(channel)
    }

    /// Notes that all which waited is handed over.
    private func drained(_ channel: HTTP2ClientChannel) {
        guard channel.isClear else { return }
        if !channel.outgoing.isEmpty { channel.outgoing.removeAll(keepingCapacity: true) }
        channel.outgoingStart = 0
        guard channel.isStalled else { return }
        channel.isStalled = false
        channel.isDrained = true
        note(channel)
    }
}

// Responses.
extension HTTP2ClientSession {
    /// Reads the server's bytes. What they change is news afterwards.
    ///
    /// - now: milliseconds of a clock that does not go back.
    package func receive(_ bytes: Span<UInt8>, now: UInt64) throws(Fault) {
        self.now = now
        do throws(HTTP2Excess) { try countFrames(of: bytes) } catch { throw .excess(error) }
        let taken = read(bytes)
        if let excess { throw .excess(excess) }
        guard taken >= 0 else { throw .library(Int32(clamping: taken)) }
        // Content counts for the connection's window until it is here: a stream whose client is
        // slow must not stop the others. Its own window bounds what it keeps.
        if unconsumed > 0 { unsafe nghttp2_session_consume_connection(pointer, unconsumed) }
        unconsumed = 0
    }

    /// Counts the frames that begin in these bytes. If one is too many, none of the bytes is read.
    private func countFrames(of bytes: Span<UInt8>) throws(HTTP2Excess) {
        var position = 0
        while let frame = walk.next(in: bytes, from: &position) {
            let isLate = channels[Int32(frame.stream)] == nil
            try ledger.frameBegan(frame, isLate: isLate, now: now)
        }
    }

    /// Takes at most this number of bytes of a channel's content.
    package func takeContent(of channel: HTTP2ClientChannel, atMost max: Int) -> [UInt8] {
        guard !channel.inbox.isEmpty else { return [] }
        let taken = channel.take(atMost: max)
        if channel.end == nil {
            unsafe nghttp2_session_consume_stream(pointer, channel.id, taken.count)
        }
        return taken
    }

    // MARK: Callbacks

    private func setReceivingCallbacks(_ callbacks: OpaquePointer) {
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, me in
            guard let session = unsafe HTTP2ClientSession.of(me), let frame = unsafe frame?.pointee,
                let channel = unsafe session.channels[frame.hd.stream_id]
            else { return 0 }
            let section: ResponseHeadBuilder.Section = channel.hasFinalHead ? .trailers : .head
            session.builder.begin(section, session.limits.head)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _,
            _,
            name,
            nameCount,
            value,
            valueCount,
            _,
            me in
            guard let session = unsafe HTTP2ClientSession.of(me) else { return 0 }
            // nghttp2 vouches for both during this call.
            return unsafe session.received(
                UnsafeBufferPointer(start: name, count: nameCount),
                UnsafeBufferPointer(start: value, count: valueCount)
            )
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _,
            _,
            id,
            data,
            count,
            me in
            guard let session = unsafe HTTP2ClientSession.of(me) else { return 0 }
            unsafe session.received(UnsafeBufferPointer(start: data, count: count), on: id)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, me in
            guard let session = unsafe HTTP2ClientSession.of(me), let frame = unsafe frame?.pointee
            else {
                return 0
            }
            unsafe session.received(frame.hd)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) {
            _,
            id,
            code,
            me in
            guard let session = unsafe HTTP2ClientSession.of(me), let channel = session.channels[id]
            else { return 0 }
            session.closed(channel, HTTP2ClientSession.end(of: channel, code))
            return 0
        }
    }

    private static func end(of channel: HTTP2ClientChannel, _ code: UInt32) -> HTTP2StreamEnd {
        if !channel.isHeadSent || code == HTTP2Code.refusedStream.rawValue { return .refused }
        let isInOrder = channel.isInputEnded && channel.isOutputSent
        return isInOrder && code == HTTP2Code.noError.rawValue ? .inOrder : .reset(code)
    }

    private func received(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>
    ) -> Int32 {
        unsafe builder.add(name, value)
        do throws(HTTP2Excess) {
            let length = unsafe RequestHeadBuilder.length(name, value)
            try ledger.fieldCame(length, of: builder.count, now: now)
            return 0
        } catch {
            // nghttp2 reads no byte after this.
            note(error)
            return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
        }
    }

    private func received(_ content: UnsafeBufferPointer<UInt8>, on id: Int32) {
        unconsumed += content.count
        guard let channel = channels[id] else { return }
        unsafe channel.inbox.append(contentsOf: content)
        note(channel)
    }

    private func received(_ frame: nghttp2_frame_hd) {
        let isLast = UInt32(frame.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
        let isAcknowledgement = UInt32(frame.flags) & NGHTTP2_FLAG_ACK.rawValue != 0
        switch UInt32(frame.type) {
        case NGHTTP2_HEADERS.rawValue:
            guard let channel = channels[frame.stream_id] else { return }
            if channel.hasFinalHead {
                channel.trailers = builder.endTrailers()
            } else {
                let head = builder.endHead(isLast: isLast, isHead: channel.isHead)
                channel.took(head, limits.head)
            }
            if isLast { channel.isInputEnded = true }
            note(channel)
        case NGHTTP2_DATA.rawValue:
            guard isLast, let channel = channels[frame.stream_id] else { return }
            channel.isInputEnded = true
            note(channel)
        case NGHTTP2_SETTINGS.rawValue:
            if !isAcknowledgement, standing == .greeting { relation = .open }
        case NGHTTP2_RST_STREAM.rawValue: counts.resetsReceived += 1
        case NGHTTP2_GOAWAY.rawValue:
            counts.goAways += 1
            if standing != .violated { relation = .leaving }
        case NGHTTP2_PING.rawValue: if isAcknowledgement { pingsOpen = 0 }
        default: break
        }
    }
}
