internal import CNGHTTP2

/// What both ends of a connection ask of nghttp2.
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
        try Failure.check(nghttp2_session_callbacks_new(&callbacks))
        defer { nghttp2_session_callbacks_del(callbacks) }
        var option: OpaquePointer?
        try Failure.check(nghttp2_option_new(&option))
        defer { nghttp2_option_del(option) }
        guard let callbacks, let option else { throw outOfMemory }
        // Windows open when the driver takes content, so they are the backpressure.
        nghttp2_option_set_no_auto_window_update(option, 1)
        // nghttp2 keeps nothing of closed streams.
        nghttp2_option_set_no_closed_streams(option, 1)
        // Otherwise nghttp2 sends no head beyond 64 KiB. Each is bounded where it was read.
        nghttp2_option_set_max_send_header_block_length(option, headSentMax)
        // The ledgers count, by the limits of the configuration.
        cnghttp2_count_nothing(option)
        set(callbacks)
        let owner = Unmanaged.passUnretained(owner).toOpaque()
        var made: OpaquePointer?
        let code =
            switch end {
            case .client: nghttp2_session_client_new2(&made, callbacks, owner, option)
            case .server: nghttp2_session_server_new2(&made, callbacks, owner, option)
            }
        try Failure.check(code)
        guard let made else { throw outOfMemory }
        return made
    }

    /// More than any head that is sent, in bytes: `limits.head` is at most 1 MiB, and nghttp2
    /// counts some more for each field.
    private static let headSentMax = 4 << 20

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
        let none = UInt8(NGHTTP2_FLAG_NONE.rawValue)
        try Failure.check(nghttp2_submit_settings(pointer, none, settings, settings.count))
        try Failure.check(
            nghttp2_session_set_local_window_size(pointer, none, 0, Int32(clamping: window))
        )
    }
}

/// What a connection keeps for each stream. It is among its connection's news once at most.
protocol NotedChannel: AnyObject {
    /// Whether it is among the news.
    var isNoted: Bool { get set }
}

/// Channels with news, in the order in which it came.
struct ChannelNews<Channel: NotedChannel> {
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
