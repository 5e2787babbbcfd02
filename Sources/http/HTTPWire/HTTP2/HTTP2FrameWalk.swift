/// Finds the heads of frames in the peer's bytes.
///
/// It sees the bytes before nghttp2 does. nghttp2 does not report the frames that it drops: those
/// of unknown types, those of closed streams, and CONTINUATION. A flood of them costs as much as
/// any other flood.
///
/// Nor does nghttp2 check PRIORITY frames where SETTINGS say that priorities are not used (RFC 9218
/// §2.1). So the dependencies in them are compared here.
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

    /// What is wrong with a PRIORITY frame.
    enum PriorityFault: Equatable {
        /// It belongs to no stream (RFC 9113 §6.3), or more than one frame is wrong.
        case connection
        /// The stream depends on itself (RFC 7540 §5.3.1).
        case stream(UInt32)
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
    private static let priority: UInt8 = 0x2
    private static let priorityCount: UInt32 = 5
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
    /// Bytes of the stream on which a PRIORITY frame depends that are still to come.
    private var dependencyRest = 0
    private var dependency: UInt32 = 0
    private var dependent: UInt32 = 0
    private var priorityFault: PriorityFault?

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
        if dependencyRest > 0 { takeDependency(bytes, from: position) }
        let skipped = min(rest, bytes.count - position)
        rest -= skipped
        position += skipped
        if headBytes == 0, bytes.count - position >= Self.headCount {
            // Most heads come whole. Despite its name the load is bounds-checked.
            let word = unsafe bytes.bytes.unsafeLoadUnaligned(
                fromByteOffset: position,
                as: UInt64.self
            )
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

    /// Returns what was wrong with PRIORITY frames since the last call.
    mutating func takePriorityFault() -> PriorityFault? { priorityFault.take() }

    /// Reads the stream on which a PRIORITY frame depends: the first four bytes of its payload.
    private mutating func takeDependency(_ bytes: Span<UInt8>, from position: Int) {
        let end = min(position + dependencyRest, bytes.count)
        for index in position..<end { dependency = dependency << 8 | UInt32(bytes[index]) }
        dependencyRest -= end - position
        guard dependencyRest == 0, dependency & 0x7FFF_FFFF == dependent else { return }
        note(.stream(dependent))
    }

    private mutating func note(_ fault: PriorityFault) {
        priorityFault = priorityFault == nil || priorityFault == fault ? fault : .connection
    }

    /// A PRIORITY frame with another length is nghttp2's to refuse.
    private mutating func priorityBegan(_ head: FrameHead) {
        guard head.stream > 0 else { return note(.connection) }
        guard length == Self.priorityCount else { return }
        dependent = head.stream
        dependency = 0
        dependencyRest = 4
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
        if type == Self.priority { priorityBegan(head) }
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
