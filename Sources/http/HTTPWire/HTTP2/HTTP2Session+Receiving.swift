internal import CNGHTTP2

// The client's bytes.
extension HTTP2Session {
    /// Reads the client's bytes. What they change is news afterwards.
    ///
    /// - now: milliseconds of a clock that does not go back.
    package func receive(_ bytes: Span<UInt8>, now: UInt64) throws(Fault) {
        self.now = now
        do throws(HTTP2Excess) { try countFrames(of: bytes) } catch { throw .excess(error) }
        let taken = read(bytes)
        if taken >= 0, let fault = walk.takePriorityFault() { end(by: fault) }
        if let excess = takeExcess() { throw .excess(excess) }
        guard taken < 0 else { return }
        let isPreface = taken == Int(NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue)
        throw isPreface ? .badPreface : .library(Int32(clamping: taken))
    }

    /// Resets the stream whose PRIORITY frame was wrong, or ends the connection.
    ///
    /// A stream that is not open can't be reset (RFC 9113 §6.4), so the connection ends, as §5.4.2
    /// allows.
    private func end(by fault: HTTP2FrameWalk.PriorityFault) {
        guard case .stream(let id) = fault, let channel = channels[Int32(bitPattern: id)],
            !channel.isClosed
        else { return terminate(.protocolError) }
        _ = wasInvalid()
        submitReset(of: channel, .protocolError)
    }

    /// Counts the frames that begin in these bytes. If one is too many, none of the bytes is read.
    private func countFrames(of bytes: Span<UInt8>) throws(HTTP2Excess) {
        let known = newestHead
        var position = 0
        while let frame = walk.next(in: bytes, from: &position) {
            try ledger.frameBegan(frame, now: now)
            guard frame.type == HTTP2FrameWalk.headers else { continue }
            newestHead = max(newestHead, frame.stream)
            if frame.stream <= known, channels[Int32(frame.stream)] == nil {
                try ledger.headDropped(now: now)
            }
        }
    }

    /// Takes all content of a channel that is here, or at most this number of bytes of it.
    package func takeContent(of channel: HTTP2Channel, atMost max: Int = .max) -> [UInt8] {
        guard !channel.inbox.isEmpty else { return [] }
        let taken = channel.take(atMost: max)
        consume(taken.count, of: channel)
        return taken
    }

    /// Opens the windows again for this number of bytes.
    private func consume(_ count: Int, of channel: HTTP2Channel) {
        if channel.isClosed {
            unsafe nghttp2_session_consume_connection(pointer, count)
        } else {
            unsafe nghttp2_session_consume(pointer, channel.id, count)
        }
    }

    // MARK: Callbacks

    func setReceivingCallbacks(_ callbacks: OpaquePointer) {
        unsafe setHeadCallbacks(callbacks)
        unsafe setContentCallbacks(callbacks)
    }

    private func setHeadCallbacks(_ callbacks: OpaquePointer) {
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, me in
            guard let session = unsafe HTTP2Session.of(me), let frame = unsafe frame?.pointee else {
                return 0
            }
            session.trailerBytes = 0
            if unsafe frame.headers.cat == NGHTTP2_HCAT_REQUEST {
                unsafe session.open(frame.hd.stream_id)
            }
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _,
            frame,
            name,
            nameCount,
            value,
            valueCount,
            _,
            me in
            guard let session = unsafe HTTP2Session.of(me), let frame = unsafe frame?.pointee else {
                return 0
            }
            // nghttp2 vouches for both during this call.
            return unsafe session.received(
                UnsafeBufferPointer(start: name, count: nameCount),
                UnsafeBufferPointer(start: value, count: valueCount),
                isRequest: frame.headers.cat == NGHTTP2_HCAT_REQUEST
            )
        }
        unsafe nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) {
            _,
            _,
            _,
            me in
            guard let session = unsafe HTTP2Session.of(me) else { return 0 }
            return session.wasInvalid()
        }
    }

    private func setContentCallbacks(_ callbacks: OpaquePointer) {
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _,
            _,
            id,
            data,
            count,
            me in
            guard let session = unsafe HTTP2Session.of(me) else { return 0 }
            unsafe session.received(UnsafeBufferPointer(start: data, count: count), on: id)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, me in
            guard let session = unsafe HTTP2Session.of(me), let frame = unsafe frame?.pointee else {
                return 0
            }
            unsafe session.received(frame.hd, isRequest: frame.headers.cat == NGHTTP2_HCAT_REQUEST)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) {
            _,
            id,
            code,
            me in
            guard let session = unsafe HTTP2Session.of(me), let channel = session.channels[id]
            else {
                return 0
            }
            session.closed(channel, code)
            // Content that is dropped must not close the connection's window.
            if !channel.hasEndedTunnel { _ = session.takeContent(of: channel) }
            return 0
        }
    }

    /// Ends the reading: nghttp2 reads no byte after this.
    private func failed(_ excess: HTTP2Excess) -> Int32 {
        note(excess)
        return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
    }

    /// Trailers of requests end here, as those of HTTP/1.1 do.
    private func received(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>,
        isRequest: Bool
    ) -> Int32 {
        let length = unsafe RequestHeadBuilder.length(name, value)
        if isRequest {
            unsafe builder.add(name, value, within: limits.head)
        } else {
            trailerBytes += length
        }
        do throws(HTTP2Excess) {
            let total = isRequest ? builder.count : trailerBytes
            try ledger.fieldCame(length, of: total, now: now)
            return 0
        } catch {
            return failed(error)
        }
    }

    private func received(_ content: UnsafeBufferPointer<UInt8>, on id: Int32) {
        guard let channel = channels[id] else { return }
        unsafe channel.inbox.append(contentsOf: content)
        // The response is complete: further content is dropped.
        note(channel)
    }

    /// - isRequest: of HEADERS, whether they are a request's and not its trailers.
    private func received(_ frame: nghttp2_frame_hd, isRequest: Bool) {
        let isLast = UInt32(frame.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
        switch UInt32(frame.type) {
        case NGHTTP2_HEADERS.rawValue:
            guard let channel = channels[frame.stream_id] else { return }
            if isRequest {
                channel.head = builder.end(hasContent: !isLast)
                channel.isHTTPS = builder.isHTTPS
                channel.asksTunnel = builder.asksTunnel
            }
            if isLast { channel.isInputEnded = true }
            note(channel)
        case NGHTTP2_DATA.rawValue:
            guard isLast, let channel = channels[frame.stream_id] else { return }
            channel.isInputEnded = true
            note(channel)
        default: break
        }
    }
}
