import HTTPWire

/// Octets of a connection that are not used yet, and the search for the next head in them.
///
/// Holds less than one head and one read of the lane: who has a whole request reads no further.
struct RequestReader: ~Copyable {
    private var octets: [UInt8] = []
    /// The first octet that is not used.
    private var start = 0
    private var scanner = HeadScanner(.request(isSecure: false))
    private var head = RequestHead()

    var isEmpty: Bool { start == octets.count }

    /// Whether a head has begun and not ended.
    var hasBegun: Bool { scanner.hasBegun }

    /// Takes what was read.
    mutating func append(_ read: UnsafeBufferPointer<UInt8>) {
        octets.removeFirst(start)
        start = 0
        octets.append(contentsOf: read)
    }

    /// The next request; `nil` when its head has not ended.
    ///
    /// - Throws: `Malformed`; the connection is of no more use then.
    mutating func next(_ limits: HeadLimits) throws(Malformed) -> AdminRequest? {
        guard !isEmpty else { return nil }
        let held = octets
        let rest = held.span.extracting(droppingFirst: start)
        guard case .complete(let range) = try scanner.scan(rest, limits: limits) else {
            return nil
        }
        let found = rest.extracting(range)
        try head.read(found, isSecure: false, limits: limits)
        let request = AdminRequest(head, found)
        start += range.upperBound
        scanner = HeadScanner(.request(isSecure: false))
        if isEmpty {
            octets = []
            start = 0
        }
        return request
    }
}
