/// Appends the bytes around content in the chunked coding (RFC 9112 §7.1).
package enum ChunkWriter {
    /// Appends the bytes before a chunk.
    ///
    /// `count`: more than zero; zero would end the content.
    package static func beginChunk(_ count: Int, into out: inout [UInt8]) {
        precondition(count > 0, "ChunkWriter: a chunk has bytes")
        out.append(hexadecimal: UInt64(count))
        out.appendLineEnd()
    }

    /// Appends the bytes after a chunk.
    package static func endChunk(into out: inout [UInt8]) { out.appendLineEnd() }

    /// Appends the end of a message without trailers. Only a complete message gets it: a truncated
    /// one must not have an end (RFC 9112 §8).
    package static func end(into out: inout [UInt8]) { out.append("0\r\n\r\n") }

    /// Appends the end of a message with those trailer fields that may be forwarded.
    package static func end(with trailers: TrailerSection, into out: inout [UInt8]) {
        out.append("0\r\n")
        trailers.appendFields(to: &out)
        out.appendLineEnd()
    }
}

extension TrailerSection {
    /// Appends the fields that may be forwarded, a line each.
    package func appendFields(to out: inout [UInt8]) {
        let bytes = bytes.span
        for field in fields.fields
        where !FieldKindSet.forbiddenInTrailers.contains(field.kind) {
            out.append(bytes, field.name)
            out.append(": ")
            out.append(bytes, field.value)
            out.appendLineEnd()
        }
    }
}

/// Gathers the content of one read in one chunk (RFC 9112 §7.1), however small the sender's chunks
/// were: a sender of one-byte chunks makes no such work for the receiver.
package struct ChunkGatherer: ~Copyable {
    /// Where the chunk's size is.
    private var header = 0..<0
    /// The size that is written there.
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
        unsafe content.withUnsafeBufferPointer { unsafe out.append(contentsOf: $0) }
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

/// Gathers what goes to a peer in one write: a head, then content in its framing.
package struct OutgoingContent: ~Copyable {
    /// Content up to this size is copied after the gathered bytes. That is cheaper than
    /// to give the kernel two pieces.
    private static let copiedMax = 1024

    package var bytes: [UInt8] = []
    package var framing = BodyFraming.none
    private var chunk = ChunkGatherer()

    package init() {}

    /// Gathers a piece of content. `false` when it is so large that it should be sent from its own
    /// place, after the gathered bytes.
    package mutating func gather(_ piece: Span<UInt8>) -> Bool {
        if framing == .chunked {
            chunk.add(piece, to: &bytes)
            return true
        }
        guard piece.count <= Self.copiedMax else { return false }
        // The pointer lives for the call.
        unsafe piece.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
        return true
    }

    package mutating func end(_ trailers: TrailerSection?) {
        guard framing == .chunked else { return }
        chunk.finish(in: &bytes)
        if let trailers {
            ChunkWriter.end(with: trailers, into: &bytes)
        } else {
            ChunkWriter.end(into: &bytes)
        }
    }

    /// The gathered bytes are about to be sent.
    package mutating func finish() { chunk.finish(in: &bytes) }
}
