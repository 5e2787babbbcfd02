/// Appends what stands around content in the chunked coding (RFC 9112 §7.1).
package enum ChunkWriter {
    /// Before the bytes of a chunk.
    ///
    /// `count`: more than zero; zero would end the content.
    package static func beginChunk(_ count: Int, into out: inout [UInt8]) {
        precondition(count > 0, "ChunkWriter: a chunk has bytes")
        out.append(hexadecimal: UInt64(count))
        out.appendLineEnd()
    }

    /// After the bytes of a chunk.
    package static func endChunk(into out: inout [UInt8]) { out.appendLineEnd() }

    /// The end of a message without trailers. Only after a complete message: a truncated one must
    /// not get an end (RFC 9112 §8).
    package static func end(into out: inout [UInt8]) { out.append("0\r\n\r\n") }

    /// The end of a message with those trailer fields that may be forwarded.
    package static func end(with trailers: TrailerSection, into out: inout [UInt8]) {
        out.append("0\r\n")
        trailers.appendFields(to: &out)
        out.appendLineEnd()
    }
}

extension TrailerSection {
    /// Appends the fields that may be forwarded, a line each.
    package func appendFields(to out: inout [UInt8]) {
        let octets = octets.span
        for field in fields.fields
        where !FieldKindSet.forbiddenInTrailers.contains(field.kind) {
            out.append(octets, field.name)
            out.append(": ")
            out.append(octets, field.value)
            out.appendLineEnd()
        }
    }
}
