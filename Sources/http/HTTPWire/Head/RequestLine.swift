/// `method SP request-target SP HTTP-version` (RFC 9112 §3), without its CRLF.
struct RequestLine {
    var method: Method = .other
    var methodRange: Range<Int> = 0..<0
    /// The target as received.
    var target: Range<Int> = 0..<0
    var form: TargetForm = .origin
    /// The authority of an absolute-form target, else empty.
    var authority: Range<Int> = 0..<0
    /// From the first `/`; empty for `*` and for an absolute-form target without a path.
    var path: Range<Int> = 0..<0
    /// With its `?`; empty without a query.
    var query: Range<Int> = 0..<0
    var version: HTTPVersion = .http11
    var isHTTPSTarget = false

    init() {}

    /// Reads a request line. Nothing is corrected (RFC 9112 §3 ¶3).
    ///
    /// Errors are found in this order: method, target bytes, version syntax, lengths as they are
    /// passed, refused methods, form of the target, version.
    init(
        _ bytes: Span<UInt8>,
        _ line: Range<Int>,
        isSecure: Bool,
        limits: HeadLimits
    ) throws(Malformed) {
        var index = line.lowerBound
        let end = line.upperBound

        while index < end, ByteSet.token.contains(bytes[index]) { index += 1 }
        methodRange = line.lowerBound..<index
        guard !methodRange.isEmpty else { throw Malformed(.methodSyntax, at: index) }
        guard methodRange.count <= limits.methodBytesMax else {
            throw Malformed(.methodTooLong, at: index)
        }
        guard index < end else { throw Malformed(.requestLineSyntax, at: index) }
        guard bytes[index] == ASCIIByte.space else { throw Malformed(.methodSyntax, at: index) }
        index += 1

        let targetStart = index
        var queryStart = -1
        while index < end, ByteSet.target.contains(bytes[index]) {
            if bytes[index] == UInt8(ascii: "?"), queryStart < 0 { queryStart = index }
            index += 1
        }
        target = targetStart..<index
        guard target.count <= limits.targetBytesMax else {
            throw Malformed(.targetTooLong, at: index)
        }
        guard index < end else { throw Malformed(.requestLineSyntax, at: index) }
        switch bytes[index] {
        case ASCIIByte.space: break
        case UInt8(ascii: "#"): throw Malformed(.targetFragment, at: index)
        default: throw Malformed(.targetByte, at: index)
        }
        guard !target.isEmpty else { throw Malformed(.requestLineSyntax, at: index) }
        index += 1

        guard HTTPVersion.hasSyntax(bytes, index..<end) else {
            throw Malformed(.versionSyntax, at: index)
        }

        method = Method.read(bytes, methodRange)
        guard method != .connect, method != .trace else {
            throw Malformed(.methodRefused, at: line.lowerBound)
        }
        if method == .other, RegisteredMethod.isMisspelt(bytes, methodRange) {
            throw Malformed(.methodCase, at: line.lowerBound)
        }
        let pathEnd = queryStart < 0 ? target.upperBound : queryStart
        query = pathEnd..<target.upperBound
        try readForm(bytes, pathEnd: pathEnd, isSecure: isSecure)
        guard let spoken = HTTPVersion(bytes, index..<end) else {
            throw Malformed(.versionUnsupported, at: index)
        }
        version = spoken
    }

    /// Splits the target by its form (RFC 9112 §3.2).
    private mutating func readForm(
        _ bytes: Span<UInt8>,
        pathEnd: Int,
        isSecure: Bool
    ) throws(Malformed) {
        let start = target.lowerBound
        switch bytes[start] {
        case UInt8(ascii: "/"):
            form = .origin
            path = start..<pathEnd
        case UInt8(ascii: "*") where target.count == 1 && method == .options:
            // RFC 9112 §3.2.4: for a server-wide OPTIONS only.
            form = .asterisk
            path = start..<start
        default:
            form = .absolute
            try readAbsolute(bytes, pathEnd: pathEnd, isSecure: isSecure)
        }
    }

    /// Splits an absolute-form target (RFC 9112 §3.2.2).
    private mutating func readAbsolute(
        _ bytes: Span<UInt8>,
        pathEnd: Int,
        isSecure: Bool
    ) throws(Malformed) {
        let start = target.lowerBound
        var index: Int
        if target.count >= 7, ByteScan.equal(bytes, start..<start + 7, "http://") {
            index = start + 7
        } else if target.count >= 8, ByteScan.equal(bytes, start..<start + 8, "https://") {
            isHTTPSTarget = true
            // RFC 9110 §7.4 ¶3.
            guard isSecure else { throw Malformed(.targetScheme, at: start) }
            index = start + 8
        } else {
            throw Malformed(.targetForm, at: start)
        }
        let authorityStart = index
        while index < pathEnd, bytes[index] != UInt8(ascii: "/") {
            // RFC 9110 §4.2.4: userinfo is an error.
            guard bytes[index] != UInt8(ascii: "@") else {
                throw Malformed(.targetUserinfo, at: index)
            }
            index += 1
        }
        authority = authorityStart..<index
        path = index..<pathEnd
        guard Authority(bytes, authority) != nil else {
            throw Malformed(.targetAuthority, at: authorityStart)
        }
    }
}

/// The forms of a request target (RFC 9112 §3.2); the authority form belongs to CONNECT, which is
/// not served.
package enum TargetForm: UInt8, Sendable {
    case origin, absolute, asterisk
}

/// The first line of a head: a request line or a status line.
enum StartLine {
    /// Finds the end of the line: the place of its CRLF.
    ///
    /// Throws `head-too-long`, or what is wrong with the first byte that no line may have.
    ///
    /// - `bytes`: exactly the head.
    static func end(_ bytes: Span<UInt8>, limits: HeadLimits) throws(Malformed) -> Int {
        guard bytes.count <= limits.headBytesMax else {
            throw Malformed(.headTooLong, at: limits.headBytesMax)
        }
        let end = ByteScan.control(in: bytes, from: 0, to: bytes.count)
        guard end + 1 < bytes.count, bytes[end] == ASCIIByte.carriageReturn,
            bytes[end + 1] == ASCIIByte.lineFeed
        else { throw ByteScan.lineFault(bytes, at: end) }
        return end
    }
}

/// The versions that are spoken. Own messages always say 1.1 (RFC 9112 §2.3).
package enum HTTPVersion: UInt8, Sendable {
    case http10
    case http11

    /// Whether the bytes are `HTTP/DIGIT.DIGIT`, letters compared with case (RFC 9112 §2.3).
    static func hasSyntax(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        let start = range.lowerBound
        return range.count == 8 && bytes[start] == UInt8(ascii: "H")
            && bytes[start + 1] == UInt8(ascii: "T") && bytes[start + 2] == UInt8(ascii: "T")
            && bytes[start + 3] == UInt8(ascii: "P") && bytes[start + 4] == UInt8(ascii: "/")
            && ASCIIByte.isDigit(bytes[start + 5]) && bytes[start + 6] == UInt8(ascii: ".")
            && ASCIIByte.isDigit(bytes[start + 7])
    }

    /// The version in bytes that have its syntax; `nil` for one that the gateway does not speak.
    ///
    /// It does not speak a minor version above 1. RFC 9110 §2.5 allows to treat it as 1.1, but no
    /// such version exists, so a client that sends it is probing.
    init?(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        guard bytes[range.lowerBound + 5] == UInt8(ascii: "1") else { return nil }
        switch bytes[range.lowerBound + 7] {
        case UInt8(ascii: "0"): self = .http10
        case UInt8(ascii: "1"): self = .http11
        default: return nil
        }
    }
}
