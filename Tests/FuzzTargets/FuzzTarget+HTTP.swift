import HTTPWire

extension FuzzTarget {
    /// Requests on one connection: pieces change nothing, and what is forwarded reads again.
    static func requests(_ bytes: [UInt8]) {
        let whole = RequestStream([bytes])
        for pieces in Pieces.all(bytes) {
            demand(
                whole.agrees(with: RequestStream(pieces)),
                "requests in \(pieces.count) pieces are those of one"
            )
        }
        let fault = faultOfRewriting(bytes)
        demand(fault == nil, "\(fault ?? "")")
    }

    /// The head that is written for a head frames its content in the same way: what differs, or
    /// `nil`.
    package static func faultOfRewriting(_ bytes: [UInt8]) -> String? {
        let limits = HeadLimits()
        var scanner = HeadScanner(.request(isSecure: false))
        guard case .complete(let range)? = try? scanner.scan(bytes.span, limits: limits) else {
            return nil
        }
        let source = bytes.span.extracting(range)
        var head = RequestHead()
        guard (try? head.read(source, isSecure: false, limits: limits)) != nil else { return nil }
        // HTTP/1.0 without Host has no authority to write, and never comes this far in the proxy.
        guard head.version == .http11 else { return nil }
        var options = HeadWriter.RequestOptions()
        options.framing = head.framing
        var out: [UInt8] = []
        HeadWriter.beginRequest(head, source, options: options, into: &out)
        HeadWriter.endHead(into: &out)
        var again = RequestHead()
        do throws(Malformed) {
            // Fields of our own make it longer than what was read.
            var wide = limits
            wide.headBytesMax *= 2
            try again.read(out.span, isSecure: false, limits: wide)
        } catch {
            return "what is written does not read again: \(error)"
        }
        guard again.framing == head.framing else {
            return "what is written has not the framing that was read"
        }
        return again.form == .absolute ? "what is written is not in origin-form" : nil
    }

    /// An answer; the first byte tells to which method.
    static func responses(_ bytes: [UInt8]) {
        guard let first = bytes.first else { return }
        let method: Method =
            switch first {
            case UInt8(ascii: "h"): .head
            case UInt8(ascii: "p"): .post
            default: .get
            }
        let answer = Array(bytes.dropFirst())
        let whole = ResponseStream([answer], to: method)
        for pieces in Pieces.all(answer) {
            demand(
                whole.agrees(with: ResponseStream(pieces, to: method)),
                "an answer in \(pieces.count) pieces is that of one"
            )
        }
    }

    /// A chunked content: pieces change neither content, nor trailers, nor its end.
    static func chunks(_ bytes: [UInt8]) {
        let whole = chunked([bytes])
        for pieces in Pieces.all(bytes) {
            let cut = chunked(pieces)
            demand(
                whole.content == cut.content || whole.isRejected && cut.isRejected,
                "a content in pieces is that of one"
            )
            demand(
                whole.trailers == cut.trailers && whole.consumed == cut.consumed
                    && whole.isRejected == cut.isRejected,
                "a content in pieces ends as one"
            )
        }
        guard !whole.isRejected, whole.consumed >= 0 else { return }
        var written: [UInt8] = []
        for byte in whole.content {
            ChunkWriter.beginChunk(1, into: &written)
            written.append(byte)
            ChunkWriter.endChunk(into: &written)
        }
        ChunkWriter.end(into: &written)
        demand(chunked([written]).content == whole.content, "written chunks read again")
    }

    private struct Chunked: Equatable {
        var content: [UInt8] = []
        var trailers: [[UInt8]] = []
        /// Bytes up to the end of the message; -1 when it does not end.
        var consumed = -1
        var isRejected = false
    }

    private static func chunked(_ pieces: [[UInt8]]) -> Chunked {
        var result = Chunked()
        var reader = BodyReader(.chunked, limits: HeadLimits())
        var before = 0
        for piece in pieces {
            var position = 0
            do throws(Malformed) {
                reading: while true {
                    switch try reader.read(piece.span, from: &position) {
                    case .content(let range): result.content += piece[range]
                    case .needMore: break reading
                    case .finished:
                        result.consumed = before + position
                        let bytes = reader.trailers.bytes
                        result.trailers = reader.trailers.fields.fields.map {
                            bytes[$0.name] + [0x3A] + bytes[$0.value]
                        }
                        return result
                    }
                }
            } catch {
                result.isRejected = true
                return result
            }
            demand(position == piece.count, "all of a piece is consumed")
            before += piece.count
        }
        return result
    }
}
