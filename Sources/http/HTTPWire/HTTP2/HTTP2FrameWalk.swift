/// Finds the heads of frames in the peer's bytes.
///
/// It sees the bytes before nghttp2 does. nghttp2 does not report the frames that it drops: those
/// of unknown types, those of closed streams, and CONTINUATION. A flood of them costs as much as
/// any other flood.
struct HTTP2FrameWalk {
    /// The first nine bytes of a frame (RFC 9113 §4.1).
    ///
    /// | bytes | |
    /// |---|---|
    /// | 3 | length of the payload |
    /// | 1 | type |
    /// | 1 | flags |
    /// | 4 | a reserved bit, and the stream |
    struct FrameHead: Equatable {
        var type: UInt8
        var flags: UInt8 = 0
        var length = 0
        var stream: UInt32 = 0

        func has(_ flag: UInt8) -> Bool { flags & flag != 0 }

        /// Of DATA: whether it may carry nothing, not even the end. Padding carries nothing either,
        /// and counts where a frame may have nothing else.
        var mayBeEmpty: Bool {
            let isShort = length == 0 || has(HTTP2FrameWalk.isPadded) && length <= 256
            return isShort && !has(HTTP2FrameWalk.endsStream)
        }
    }

    /// Where a request's or trailers' fields are, which may come in several frames.
    private enum FieldBlock {
        case none
        /// A CONTINUATION frame follows.
        case open
        /// The current frame is the block's last one.
        case ending
    }

    static let headers: UInt8 = 0x1
    static let continuation: UInt8 = 0x9
    private static let (endsStream, isPadded): (UInt8, UInt8) = (0x1, 0x8)
    private static let headCount = 9
    private static let endsHead: UInt8 = 0x4

    /// Bytes of the preface, or of a payload, that are still to come.
    private var rest: Int
    /// Bytes of a frame's head that have come.
    private var headBytes = 0
    private var length: UInt32 = 0
    private var type: UInt8 = 0
    private var flags: UInt8 = 0
    private var stream: UInt32 = 0
    private var block = FieldBlock.none

    /// - preface: the bytes that come before the first frame. Only a client sends any.
    init(preface: Int = HTTP2Preface.count) { rest = preface }

    /// Whether a block of fields has begun and not ended.
    var isMidFields: Bool {
        switch block {
        case .none: false
        case .open: true
        case .ending: rest > 0
        }
    }

    /// Reads to the end of the next frame's head.
    ///
    /// - Parameters:
    ///   - bytes: the bytes that came; the same bytes until `position` is at their end.
    ///   - position: where to go on, and afterwards the place after the head.
    /// - Returns: the head; `nil` when the bytes have ended before one is complete.
    mutating func next(in bytes: Span<UInt8>, from position: inout Int) -> FrameHead? {
        let skipped = min(rest, bytes.count - position)
        rest -= skipped
        position += skipped
        if headBytes == 0, bytes.count - position >= Self.headCount {
            // Most heads come whole. Despite its name the load is bounds-checked.
            let word = bytes.bytes.unsafeLoadUnaligned(fromByteOffset: position, as: UInt64.self)
            let head = UInt64(bigEndian: word)
            length = UInt32(head >> 40)
            type = UInt8(truncatingIfNeeded: head >> 32)
            flags = UInt8(truncatingIfNeeded: head >> 24)
            let last = bytes[position + Self.headCount - 1]
            stream = UInt32(truncatingIfNeeded: head) << 8 | UInt32(last)
            position += Self.headCount
            return headEnded()
        }
        while position < bytes.count {
            take(bytes[position])
            position += 1
            guard headBytes == Self.headCount else { continue }
            return headEnded()
        }
        return nil
    }

    private mutating func take(_ byte: UInt8) {
        switch headBytes {
        case 0..<3: length = length << 8 | UInt32(byte)
        case 3: type = byte
        case 4: flags = byte
        default: stream = stream << 8 | UInt32(byte)
        }
        headBytes += 1
    }

    private mutating func headEnded() -> FrameHead {
        // 24 bits.
        rest = Int(length)
        let head = FrameHead(type: type, flags: flags, length: rest, stream: stream & 0x7FFF_FFFF)
        headBytes = 0
        length = 0
        stream = 0
        if type == Self.headers || type == Self.continuation {
            block = head.has(Self.endsHead) ? .ending : .open
        } else {
            block = .none
        }
        return head
    }
}
