/// Counts the peer's acts that cost it less than they cost the gateway.
///
/// A frame is counted when its first nine bytes are here, before the session acts on it.
struct HTTP2Ledger {
    typealias FrameHead = HTTP2FrameWalk.FrameHead

    /// Allows a number of acts a minute, which may also come all at once.
    struct Allowance: Equatable {
        private static let span: UInt64 = 60_000_000
        /// Microseconds that one act uses up; `nil` without a bound.
        private let step: UInt64?
        /// When the client may take the full number again, in microseconds.
        private var settledAt: UInt64 = 0

        init(_ perMinute: Int?) {
            step = perMinute.map { Self.span / UInt64(max($0, 1)) }
        }

        /// Takes this number; `false` when fewer are left.
        mutating func take(_ count: Int = 1, now: UInt64) -> Bool {
            guard let step else { return true }
            let time = now &* 1000
            settledAt = max(settledAt, time) &+ step &* UInt64(clamping: count)
            return settledAt &- time <= Self.span
        }
    }

    /// Frames that open windows which a client may send before it got any response.
    static let windowUpdatesBase = 1024
    /// And for each frame of a response that it got. Some clients open the window of each stream as
    /// they ask on it, whether content follows or not.
    static let windowUpdatesPerFrame = 8
    private static let windowUpdatesMax = 1 << 20
    /// How far a minute's heads may exceed their bound, in multiples of it. One head may be too
    /// long by mistake. A few compressed bytes can stand for a long head, and reading it costs its
    /// full length.
    static let headExcess = 3

    private let continuationsMax: Int
    private let headBytesMax: Int
    private var headExcess: Allowance
    private var resets: Allowance
    private var provokedResets: Allowance
    private var pings: Allowance
    private var settings: Allowance
    private var emptyFrames: Allowance
    private var otherFrames: Allowance
    private var windowUpdates = windowUpdatesBase
    /// Of the head that is under way.
    private var continuations = 0
    private var headBytes = 0

    init(_ limits: HTTP2Limits) {
        continuationsMax = limits.continuationsMax
        headBytesMax = limits.head.headBytesMax
        headExcess = Allowance(headBytesMax * Self.headExcess)
        resets = Allowance(limits.resets)
        provokedResets = Allowance(limits.provokedResets)
        pings = Allowance(limits.pings)
        settings = Allowance(limits.settings)
        emptyFrames = Allowance(limits.emptyFrames)
        otherFrames = Allowance(limits.otherFrames)
    }

    /// A frame of the client's begins.
    ///
    /// - now: milliseconds of any clock that does not go back.
    mutating func frameBegan(_ frame: FrameHead, now: UInt64) throws(HTTP2Excess) {
        switch frame.type {
        case 0x0: try contentBegan(frame, now)
        case 0x1:
            continuations = 0
            headBytes = 0
            try headContinued(frame, now)
        case 0x3: guard resets.take(now: now) else { throw .resets }
        case 0x4: guard settings.take(now: now) else { throw .settings }
        case 0x6: guard pings.take(now: now) else { throw .pings }
        case 0x8:
            windowUpdates -= 1
            guard windowUpdates >= 0 else { throw .windowUpdates }
        case 0x9:
            continuations += 1
            guard continuations <= continuationsMax else { throw .continuations }
            try headContinued(frame, now)
        default: guard otherFrames.take(now: now) else { throw .otherFrames }
        }
    }

    /// A field of a head or of trailers came.
    ///
    /// - count: the bytes that the field has in HTTP/1.1's form.
    /// - total: the bytes of all so far, with it.
    mutating func fieldCame(_ count: Int, of total: Int, now: UInt64) throws(HTTP2Excess) {
        let excess = min(count, total - headBytesMax)
        guard excess > 0 else { return }
        guard headExcess.take(excess, now: now) else { throw .headerList }
    }

    /// A head came for a stream that is over: it is unpacked and dropped.
    mutating func headDropped(now: UInt64) throws(HTTP2Excess) {
        guard otherFrames.take(now: now) else { throw .otherFrames }
    }

    private mutating func contentBegan(_ frame: FrameHead, _ now: UInt64) throws(HTTP2Excess) {
        guard frame.mayBeEmpty else { return }
        guard emptyFrames.take(now: now) else { throw .emptyFrames }
    }

    private mutating func headContinued(_ frame: FrameHead, _ now: UInt64) throws(HTTP2Excess) {
        // A frame's length is a number of 24 bits, and their sum is compared each time.
        headBytes += frame.length
        // A compressed head is hardly longer than what it says.
        guard headBytes <= headBytesMax * 2 else { throw .headerList }
        guard frame.length > 0 || emptyFrames.take(now: now) else { throw .emptyFrames }
    }

    /// A stream is reset or refused because of the client's error.
    mutating func resetProvoked(now: UInt64) throws(HTTP2Excess) {
        guard provokedResets.take(now: now) else { throw .provokedResets }
    }

    /// The client got a frame of a response, for which it may open windows.
    mutating func responseSent() {
        windowUpdates = min(windowUpdates + Self.windowUpdatesPerFrame, Self.windowUpdatesMax)
    }
}

/// Counts a server's acts that cost it less than they cost the gateway.
///
/// A server has reasons for small frames that a client does not have: gRPC servers reset a stream
/// after an early answer, and ping to measure the line while content comes. Both follow what the
/// gateway does, so each request and each frame of content that it sends allows some, and time
/// allows some in any case.
struct HTTP2ServerLedger {
    /// Small frames that a server may send before it got any request, and those that time allows in
    /// a minute.
    static let spareBase = 600
    /// And for each request and each frame of content that it got.
    static let sparePerFrame = 8
    private static let spareMax = 1 << 20

    private var frames: HTTP2Ledger
    private var spare = spareBase
    private var inTime = HTTP2Ledger.Allowance(spareBase)

    init(_ limits: HTTP2Limits) {
        var limits = limits
        (limits.resets, limits.pings, limits.emptyFrames, limits.otherFrames) = (nil, nil, nil, nil)
        frames = HTTP2Ledger(limits)
    }

    /// A frame of the server's begins.
    ///
    /// - isLate: it belongs to a stream that is over.
    /// - now: milliseconds of any clock that does not go back.
    mutating func frameBegan(
        _ frame: HTTP2FrameWalk.FrameHead,
        isLate: Bool,
        now: UInt64
    ) throws(HTTP2Excess) {
        switch frame.type {
        case 0x0: if frame.mayBeEmpty { try takeSpare(.emptyFrames, now) }
        case 0x1: if isLate { try takeSpare(.otherFrames, now) }
        case 0x3: try takeSpare(.resets, now)
        case 0x4, 0x8, 0x9: break
        // The gateway's SETTINGS turn pushes off; one that came before them was never asked for.
        case 0x5: throw .otherFrames
        case 0x6: try takeSpare(.pings, now)
        default: try takeSpare(.otherFrames, now)
        }
        try frames.frameBegan(frame, now: now)
    }

    /// A field of a head or of trailers came; like ``HTTP2Ledger/fieldCame(_:of:now:)``.
    mutating func fieldCame(_ count: Int, of total: Int, now: UInt64) throws(HTTP2Excess) {
        try frames.fieldCame(count, of: total, now: now)
    }

    /// The server got a request, or a frame of its content.
    mutating func frameSent() {
        spare = min(spare + Self.sparePerFrame, Self.spareMax)
        frames.responseSent()
    }

    private mutating func takeSpare(_ excess: HTTP2Excess, _ now: UInt64) throws(HTTP2Excess) {
        guard spare == 0 else { return spare -= 1 }
        guard inTime.take(now: now) else { throw excess }
    }
}
