internal import CNGHTTP2

/// What both ends of a connection ask of nghttp2. For what is `unsafe` see ``HTTP2End``; callbacks
/// and options are deleted where they are made.
enum NGHTTP2Session {
    /// The end of a connection.
    enum End {
        case client
        case server
    }

    /// nghttp2's code for why it failed.
    struct Failure: Error {
        let code: Int32

        /// Throws for any code but that of success.
        static func check(_ code: Int32) throws(Failure) {
            guard code == 0 else { throw Failure(code: code) }
        }
    }

    /// Makes a session.
    ///
    /// - owner: what callbacks get. It deletes the session, so no callback comes after its end.
    /// - set: sets the callbacks.
    static func make(
        _ end: End,
        for owner: AnyObject,
        _ set: (OpaquePointer) -> Void
    ) throws(Failure) -> OpaquePointer {
        var callbacks: OpaquePointer?
        try unsafe Failure.check(nghttp2_session_callbacks_new(&callbacks))
        defer { unsafe nghttp2_session_callbacks_del(callbacks) }
        var option: OpaquePointer?
        try unsafe Failure.check(nghttp2_option_new(&option))
        defer { unsafe nghttp2_option_del(option) }
        guard let callbacks = unsafe callbacks, let option = unsafe option else {
            throw outOfMemory
        }
        // Windows open when the driver takes content, so they are the backpressure.
        unsafe nghttp2_option_set_no_auto_window_update(option, 1)
        // nghttp2 keeps nothing of closed streams.
        unsafe nghttp2_option_set_no_closed_streams(option, 1)
        // Otherwise nghttp2 sends no head beyond 64 KiB. Each is bounded where it was read.
        unsafe nghttp2_option_set_max_send_header_block_length(option, headSentMax)
        // The ledgers count, by the limits of the configuration.
        unsafe cnghttp2_count_nothing(option)
        unsafe set(callbacks)
        unsafe nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks) {
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _ in
            // Otherwise the field would be left out, and the rest of the message served.
            NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        let owner = unsafe Unmanaged.passUnretained(owner).toOpaque()
        var made: OpaquePointer?
        let code =
            switch end {
            case .client: unsafe nghttp2_session_client_new2(&made, callbacks, owner, option)
            case .server: unsafe nghttp2_session_server_new2(&made, callbacks, owner, option)
            }
        try Failure.check(code)
        guard let made = unsafe made else { throw outOfMemory }
        return unsafe made
    }

    /// More than any head that is sent, in bytes: `limits.head` is at most 1 MiB, and nghttp2
    /// counts some more for each field.
    private static let headSentMax = 4 << 20

    static let noFlags = UInt8(NGHTTP2_FLAG_NONE.rawValue)

    private static let outOfMemory = Failure(code: NGHTTP2_ERR_NOMEM.rawValue)

    static func setting(_ id: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
        nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(clamping: value))
    }

    /// Has SETTINGS sent, and opens the connection's window.
    static func begin(
        _ pointer: OpaquePointer,
        _ settings: [nghttp2_settings_entry],
        window: Int
    ) throws(Failure) {
        try unsafe Failure.check(
            nghttp2_submit_settings(pointer, noFlags, settings, settings.count)
        )
        try unsafe Failure.check(
            nghttp2_session_set_local_window_size(pointer, noFlags, 0, Int32(clamping: window))
        )
    }
}

/// Channels with news, in the order in which it came.
struct ChannelNews<Channel: HTTP2StreamChannel> {
    /// The most places whose memory is kept.
    private static var keptMax: Int { 16 }

    private var channels: [Channel] = []
    private var start = 0

    var isEmpty: Bool { start == channels.count }

    var count: Int { channels.count - start }

    mutating func note(_ channel: Channel) {
        guard !channel.isNoted else { return }
        channel.isNoted = true
        channels.append(channel)
    }

    mutating func next() -> Channel? {
        guard !isEmpty else { return nil }
        let channel = channels[start]
        start += 1
        channel.isNoted = false
        if isEmpty {
            // Idle connections keep little memory.
            channels.removeAll(keepingCapacity: channels.capacity <= Self.keptMax)
            start = 0
        } else if start > Self.keptMax, start > count {
            // A busy connection may have news at all times.
            channels.removeFirst(start)
            start = 0
        }
        return channel
    }
}

/// The open streams of a connection, in the order of their numbers.
///
/// A new stream has a higher number than all before it (RFC 9113 §5.1.1), so it is added at the
/// end, and streams are found by bisection. Each request looks for its streams some twenty times: a
/// dictionary would hash a number each time.
struct StreamTable<Channel: AnyObject> {
    private var ids: [Int32] = []
    private(set) var channels: [Channel] = []

    var count: Int { channels.count }

    subscript(id: Int32) -> Channel? {
        let place = place(of: id)
        return place < ids.count && ids[place] == id ? channels[place] : nil
    }

    /// Adds a stream, whose number has no other.
    mutating func add(_ channel: Channel, as id: Int32) {
        guard let last = ids.last, last > id else {
            ids.append(id)
            channels.append(channel)
            return
        }
        let place = place(of: id)
        ids.insert(id, at: place)
        channels.insert(channel, at: place)
    }

    mutating func remove(_ id: Int32) {
        let place = place(of: id)
        guard place < ids.count, ids[place] == id else { return }
        ids.remove(at: place)
        channels.remove(at: place)
    }

    /// The place of the first number that is not below this one.
    private func place(of id: Int32) -> Int {
        var (low, high) = (0, ids.count)
        while low < high {
            let middle = (low + high) / 2
            if ids[middle] < id { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
