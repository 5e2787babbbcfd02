/// Reads the content of one message with any framing, in any pieces.
///
/// This is the one place that counts content bytes: for streaming, holding and draining alike.
///
///     var position = head.upperBound
///     reading: while true {
///         switch try body.read(bytes, from: &position) {
///         case .content(let range): forward(bytes.extracting(range))
///         case .needMore: break reading      // everything up to the end of `bytes` was consumed
///         case .finished: break reading      // `position` is the first byte after the message
///         }
///     }
package struct BodyReader: Sendable {
    package enum Step: Equatable, Sendable {
        /// Bytes of the content, never empty.
        case content(Range<Int>)
        case needMore
        /// The message ends before `position`. Each further call returns it again.
        case finished
    }

    package let framing: BodyFraming
    /// Content bytes so far, without the transfer coding.
    package private(set) var contentCount: UInt64 = 0
    package private(set) var isFinished: Bool
    /// For `length`: bytes still to come.
    private var remaining: UInt64
    private var chunked: ChunkedDecoder

    package init(_ framing: BodyFraming, limits: HeadLimits) {
        self.framing = framing
        remaining = if case .length(let length) = framing { length } else { 0 }
        isFinished = framing == .none || framing == .length(0)
        chunked = ChunkedDecoder(limits: limits)
    }

    /// The trailer section, empty until the message is finished.
    package var trailers: TrailerSection { chunked.trailers }

    /// The number of content bytes that must still come; `nil` when unknown.
    package var expectedCount: UInt64? {
        switch framing {
        case .none: 0
        case .length: remaining
        case .chunked, .untilClose: isFinished ? 0 : nil
        }
    }

    /// Takes the next step.
    ///
    /// - `position`: in 0...bytes.count; advanced over what was consumed.
    /// Throws a fault of the chunked coding. The reader is invalid after it.
    package mutating func read(
        _ bytes: Span<UInt8>,
        from position: inout Int
    ) throws(Malformed) -> Step {
        if isFinished { return .finished }
        let range: Range<Int>
        switch framing {
        case .none: return .finished
        case .untilClose: range = position..<bytes.count
        case .length:
            let here = UInt64(bytes.count - position)
            // The smaller of both fits an index, as `here` does.
            range = position..<position + Int(min(here, remaining))
            remaining -= UInt64(range.count)
            isFinished = remaining == 0
        case .chunked:
            switch try chunked.read(bytes, from: &position) {
            case .content(let content): range = content
            case .needMore: return .needMore
            case .finished:
                isFinished = true
                return .finished
            }
        }
        guard !range.isEmpty else { return .needMore }
        position = range.upperBound
        // 64 bits count more bytes than can ever arrive.
        contentCount &+= UInt64(range.count)
        return .content(range)
    }

    /// The caller has taken all content of a message with a length.
    package mutating func finishLength() {
        contentCount &+= remaining
        remaining = 0
        isFinished = true
    }

    /// The sender closed its side.
    ///
    /// Throws `body-truncated` when the message had not ended (RFC 9112 §8).
    package mutating func close() throws(Malformed) {
        if framing == .untilClose { isFinished = true }
        guard isFinished else { throw Malformed(.bodyTruncated, at: 0) }
    }
}
