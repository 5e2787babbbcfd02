internal import CNGHTTP2

// Responses.
extension HTTP2Session {
    /// Begins the response with a head in HTTP/1.1's form. Content follows with
    /// ``append(_:to:)`` unless there is none.
    ///
    /// - Returns: whether the stream takes it.
    @discardableResult
    package func respond(_ channel: HTTP2Channel, _ head: Span<UInt8>, hasContent: Bool) -> Bool {
        guard !channel.isClosed, !channel.hasResponded else { return false }
        channel.hasResponded = true
        var status = NGHTTP2Fields.Status.own
        if channel.isTunnel {
            status = .established
        } else if channel.asksTunnel {
            status = .refusingTunnel
        }
        channel.endsWithContent = hasContent
        if !hasContent { channel.isOutputComplete = true }
        // nghttp2 would serve the oldest stream alone while it has content, and a stream that gets
        // nothing in `timeouts.response_idle` is reset.
        if hasContent { unsafe cnghttp2_serve_in_turn(pointer, channel.id) }
        var provider = unsafe nghttp2_data_provider()
        unsafe provider.read_callback = { _, id, _, length, flags, _, me in
            guard let session = unsafe HTTP2Session.of(me), let flags = unsafe flags else {
                return 0
            }
            return unsafe session.nextContent(of: id, atMost: length, &flags.pointee)
        }
        let code = unsafe NGHTTP2Fields.with(head, status: status) { fields in
            unsafe withUnsafePointer(to: provider) { provider in
                unsafe nghttp2_submit_response(
                    pointer,
                    channel.id,
                    fields.baseAddress,
                    fields.count,
                    hasContent ? provider : nil
                )
            }
        }
        return code == 0
    }

    /// Tells the client with the origin's 101 that the tunnel is open (RFC 8441 §4). Its bytes
    /// follow with ``append(_:to:)``.
    ///
    /// - Returns: whether the stream takes it.
    package func acceptTunnel(_ channel: HTTP2Channel, _ head: Span<UInt8>) -> Bool {
        channel.isTunnel = true
        return respond(channel, head, hasContent: true)
    }

    /// Sends an interim head.
    package func inform(_ channel: HTTP2Channel, _ head: Span<UInt8>) {
        guard !channel.isClosed, !channel.hasResponded else { return }
        _ = unsafe NGHTTP2Fields.with(head, status: .own) { fields in
            unsafe nghttp2_submit_headers(
                pointer,
                NGHTTP2Session.noFlags,
                channel.id,
                nil,
                fields.baseAddress,
                fields.count,
                nil
            )
        }
    }

    /// Adds content to a response.
    package func append(_ content: Span<UInt8>, to channel: HTTP2Channel) {
        guard !channel.isClosed, !channel.isResetByUs, !channel.isOutputComplete,
            !content.isEmpty
        else { return }
        queued(content.count)
        add(content, to: channel)
    }

    /// The response's content is complete.
    package func complete(_ channel: HTTP2Channel, _ trailers: TrailerSection?) {
        guard !channel.isClosed, !channel.isOutputComplete else { return }
        channel.isOutputComplete = true
        if let trailers, !trailers.isEmpty { channel.trailers = trailers }
        goOn(channel)
    }

    /// Takes bytes for the client, until there are none or about `max`. Client errors are answered
    /// here, and may exceed a limit: see ``takeExcess()``.
    package func send(into bytes: inout [UInt8], atMost max: Int, now: UInt64) throws(Fault) {
        try fill(&bytes, atMost: max, now: now)
    }

    // MARK: Callbacks

    func setSendingCallbacks(_ callbacks: OpaquePointer) {
        unsafe nghttp2_session_callbacks_set_send_data_callback(callbacks) {
            _,
            frame,
            head,
            count,
            _,
            me in
            guard let session = unsafe HTTP2Session.of(me), let frame = unsafe frame,
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
            guard let session = unsafe HTTP2Session.of(me), let frame = unsafe frame?.pointee else {
                return 0
            }
            let hd = unsafe frame.hd
            switch UInt32(hd.type) {
            case NGHTTP2_RST_STREAM.rawValue:
                unsafe session.resetSent(hd.stream_id, frame.rst_stream.error_code)
            case NGHTTP2_HEADERS.rawValue, NGHTTP2_DATA.rawValue:
                session.ledger.responseSent()
                let isLast = UInt32(hd.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
                if isLast { session.lastSent(hd.stream_id) }
            default: break
            }
            return 0
        }
    }

    /// The number of bytes of the next frame of content.
    private func nextContent(of id: Int32, atMost max: Int, _ flags: inout UInt32) -> Int {
        guard let channel = channels[id] else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let isComplete = channel.isOutputComplete
        let count = nextContent(of: channel, isComplete: isComplete, atMost: max, &flags)
        if flags & NGHTTP2_DATA_FLAG_EOF.rawValue != 0, let trailers = channel.trailers,
            submit(trailers, of: id)
        {
            flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
        }
        return count
    }

    private func submit(_ trailers: TrailerSection, of id: Int32) -> Bool {
        var bytes: [UInt8] = []
        if trailers.isForwardedWhole {
            bytes = trailers.bytes
        } else {
            trailers.appendFields(to: &bytes)
        }
        let code = unsafe NGHTTP2Fields.with(bytes.span, status: .none) { fields in
            unsafe fields.isEmpty
                ? -1 : nghttp2_submit_trailer(pointer, id, fields.baseAddress, fields.count)
        }
        return code == 0
    }

    private func sendContent(of id: Int32, _ head: UnsafeBufferPointer<UInt8>, _ count: Int) {
        unsafe output.append(contentsOf: head)
        guard let channel = channels[id], count > 0 else { return }
        sent(write(count, of: channel), of: channel)
    }

    private func resetSent(_ id: Int32, _ code: UInt32) {
        let isOurs = channels[id]?.isResetByUs ?? false
        if !isOurs, code != NGHTTP2_NO_ERROR.rawValue { provoked() }
    }

    /// RFC 9113 §8.1: a response may be complete before its request is. The owner reads the rest,
    /// or resets the stream.
    private func lastSent(_ id: Int32) {
        guard let channel = channels[id] else { return }
        channel.isOutputSent = true
        drained(channel)
        if !channel.isInputEnded { note(channel) }
    }
}
