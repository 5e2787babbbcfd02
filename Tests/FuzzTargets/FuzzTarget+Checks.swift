import HTTPWire

extension FuzzTarget {
    /// A message of Envoy's: it has a fault, names no request, or its head is one head that the
    /// parser of all heads reads whole or refuses.
    static func check(_ bytes: [UInt8]) {
        let limits = HeadLimits()
        do throws(CheckRequest.Fault) {
            let request = try CheckRequest(bytes.span, limits)
            _ = request.source(bytes.span)
            demand(request.content.upperBound <= bytes.count, "content is within the message")
            guard let head = request.head(bytes.span, limits) else { return }
            read(head, contentCount: request.content.count, limits)
        } catch {
            return
        }
    }

    private static func read(_ head: CheckedHead, contentCount: Int, _ limits: HeadLimits) {
        guard head.fault == nil else {
            return demand(head.bytes.isEmpty, "a malformed head has no bytes")
        }
        var scanner = HeadScanner(.request(isSecure: false))
        var request = RequestHead()
        do throws(Malformed) {
            guard case .complete(let range) = try scanner.scan(head.bytes.span, limits: limits)
            else { return demand(false, "a head is complete") }
            demand(range == 0..<head.bytes.count, "a head is one head")
            try request.read(head.bytes.span, isSecure: false, limits: limits)
        } catch {
            return
        }
        let expected: BodyFraming = contentCount == 0 ? .none : .length(UInt64(contentCount))
        demand(request.framing == expected, "the content's length is that of the message")
    }
}
