/// `HTTP-version SP status-code SP [ reason-phrase ]` (RFC 9112 §4), without its CRLF.
struct StatusLine {
    var version: HTTPVersion = .http11
    var status = 0
    var reason: Range<Int> = 0..<0

    init() {}

    /// Reads a status line.
    ///
    /// The space before an empty reason may be missing, as many origins leave it out; own lines
    /// have it.
    ///
    /// Throws `status-line-syntax`, `status-unknown`, in this order.
    init(_ octets: Span<UInt8>, _ line: Range<Int>) throws(Malformed) {
        let start = line.lowerBound
        guard line.count >= 12, octets[start + 8] == Octet.space,
            line.count == 12 || octets[start + 12] == Octet.space,
            HTTPVersion.hasSyntax(octets, start..<start + 8),
            let spoken = HTTPVersion(octets, start..<start + 8)
        else { throw Malformed(.statusLineSyntax, at: start) }
        version = spoken
        for index in start + 9..<start + 12 {
            guard Octet.isDigit(octets[index]) else {
                throw Malformed(.statusLineSyntax, at: index)
            }
            status = status * 10 + Int(octets[index] & 0x0F)
        }
        // RFC 9110 §15 would treat 600 as 500; an origin that invents classes is broken.
        guard status >= 100, status < 600 else { throw Malformed(.statusUnknown, at: start + 9) }
        reason = min(start + 13, line.upperBound)..<line.upperBound
    }
}
