/// The first line of a head: a request line or a status line.
enum StartLine {
    /// Finds the end of the line: the place of its CRLF.
    ///
    /// Throws `head-too-long`, or what is wrong with the first byte that no line may have.
    ///
    /// - `octets`: exactly the head.
    static func end(_ octets: Span<UInt8>, limits: HeadLimits) throws(Malformed) -> Int {
        guard octets.count <= limits.headBytesMax else {
            throw Malformed(.headTooLong, at: limits.headBytesMax)
        }
        let end = OctetScan.control(in: octets, from: 0, to: octets.count)
        guard end + 1 < octets.count, octets[end] == Octet.carriageReturn,
            octets[end + 1] == Octet.lineFeed
        else { throw OctetScan.lineFault(octets, at: end) }
        return end
    }
}
