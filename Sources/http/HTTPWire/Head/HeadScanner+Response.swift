extension HeadScanner {
    /// Reads the next head of a response, final or interim, and gets ready for the one behind it.
    ///
    /// - octets: what the server has sent and was not read, from `start` on.
    /// - start: where the head begins; afterwards, where it ends.
    /// - head: what was read.
    /// - rest: what is kept until more comes, when the head goes on beyond `octets`.
    /// - Returns: the head's bytes in `octets`; `nil` when more has to come.
    package mutating func nextResponse(
        in octets: Span<UInt8>,
        from start: inout Int,
        into head: inout ResponseHead,
        to method: Method,
        upgradeSent: Bool,
        limits: HeadLimits,
        keeping rest: inout [UInt8]
    ) throws(Malformed) -> Range<Int>? {
        let bytes = octets.extracting(droppingFirst: start)
        guard case .complete(let range) = try scan(bytes, limits: limits) else {
            if start > 0 || rest.isEmpty { rest = bytes.withUnsafeBufferPointer { Array($0) } }
            return nil
        }
        try head.read(
            bytes.extracting(range),
            to: method,
            upgradeSent: upgradeSent,
            limits: limits
        )
        self = HeadScanner(.response)
        let found = (start + range.lowerBound)..<(start + range.upperBound)
        start = found.upperBound
        return found
    }
}
