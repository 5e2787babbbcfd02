import HTTPWire

/// What an event loop does with the bytes of a response, between reading and writing them.
final class ResponseRelay {
    private var head = ResponseHead()
    private var out: [UInt8] = []
    private let date = HTTPDate.bytes(unixSeconds: 1_760_436_000)

    /// Reads a whole response and writes it as the client gets it; false when it is malformed.
    func pass(_ bytes: Span<UInt8>) -> Bool {
        out.removeAll(keepingCapacity: true)
        do throws(Malformed) {
            var scanner = HeadScanner(.response)
            let limits = HTTPBenchmarks.limits
            guard case .complete(let range) = try scanner.scan(bytes, limits: limits) else {
                return false
            }
            let span = bytes.extracting(range)
            try head.read(span, to: .get, upgradeSent: false, limits: limits)
            var options = HeadWriter.ResponseOptions()
            options.framing = head.framing
            options.date = date
            HeadWriter.beginResponse(head, span, options: options, into: &out)
            HeadWriter.endHead(into: &out)
            var body = BodyReader(head.framing, limits: limits)
            var position = range.upperBound
            var chunk = ChunkGatherer()
            while case .content(let range) = try body.read(bytes, from: &position) {
                // Content of a known length goes to the socket from where it lies.
                guard head.framing == .chunked else { continue }
                chunk.add(bytes.extracting(range), to: &out)
            }
            chunk.finish(in: &out)
            if head.framing == .chunked { ChunkWriter.end(into: &out) }
            return body.isFinished
        } catch {
            return false
        }
    }
}
