/// Whether a client's first bytes are those of HTTP/2 (RFC 9113 §3.4). No HTTP/1 request begins so.
package enum HTTP2Preface {
    case complete
    /// So far they are.
    case partial
    case other

    /// Bytes of the whole preface: the line, and `SM` with a blank line.
    static let count = 24
    private static let line = Array("PRI * HTTP/2.0\r\n\r\n".utf8)

    package init(_ bytes: Span<UInt8>) {
        let count = min(bytes.count, Self.line.count)
        for index in 0..<count where bytes[index] != Self.line[index] {
            self = .other
            return
        }
        self = count == Self.line.count ? .complete : .partial
    }
}
