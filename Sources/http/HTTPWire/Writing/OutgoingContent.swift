/// Gathers what goes to a peer in one write: a head, then content in its framing.
package struct OutgoingContent: ~Copyable {
    /// Content of at most so many bytes is copied behind the gathered bytes. That is cheaper than
    /// to give the kernel two pieces.
    private static let copiedMax = 1024

    /// What is gathered.
    package var bytes: [UInt8] = []
    /// How content is framed.
    package var framing = BodyFraming.none
    private var chunk = ChunkGatherer()

    package init() {}

    /// Gathers a piece of content; `false` when it is so large that it should be sent from where it
    /// is, behind what is gathered.
    package mutating func gather(_ piece: Span<UInt8>) -> Bool {
        if framing == .chunked {
            chunk.add(piece, to: &bytes)
            return true
        }
        guard piece.count <= Self.copiedMax else { return false }
        // The pointer lives for the call.
        piece.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
        return true
    }

    /// The content is complete.
    package mutating func end(_ trailers: TrailerSection?) {
        guard framing == .chunked else { return }
        chunk.finish(in: &bytes)
        if let trailers {
            ChunkWriter.end(with: trailers, into: &bytes)
        } else {
            ChunkWriter.end(into: &bytes)
        }
    }

    /// What is gathered is about to be sent.
    package mutating func finish() { chunk.finish(in: &bytes) }
}
