/// Gathers the content that one read brought in one chunk (RFC 9112 §7.1), however small the chunks
/// were in which it came: a sender of one-byte chunks makes no such work for the receiver.
package struct ChunkGatherer: ~Copyable {
    /// Where the chunk's size stands.
    private var header = 0..<0
    /// The size that stands there.
    private var announced = 0
    private var count = 0

    package init() {}

    /// Adds content, which is not empty, to the chunk at the end of `out`.
    package mutating func add(_ content: Span<UInt8>, to out: inout [UInt8]) {
        if count == 0 {
            let start = out.count
            ChunkWriter.beginChunk(content.count, into: &out)
            header = start..<out.count
            announced = content.count
        }
        // The pointer lives for the call.
        content.withUnsafeBufferPointer { out.append(contentsOf: $0) }
        count += content.count
    }

    /// Ends the chunk, if one was begun; the next content begins another. Nothing but
    /// ``add(_:to:)`` may have appended to `out`.
    package mutating func finish(in out: inout [UInt8]) {
        guard count > 0 else { return }
        defer { count = 0 }
        if count != announced {
            var size: [UInt8] = []
            ChunkWriter.beginChunk(count, into: &size)
            out.replaceSubrange(header, with: size)
        }
        ChunkWriter.endChunk(into: &out)
    }
}
