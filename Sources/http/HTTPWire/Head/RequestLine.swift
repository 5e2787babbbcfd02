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
        if target.count >= 7, ByteScan.equal(bytes, start..<start + 7, to: "http://") {
            index = start + 7
        } else if target.count >= 8, ByteScan.equal(bytes, start..<start + 8, to: "https://") {
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

/// A host and an optional port, as in Host and in an absolute-form target.
struct Authority {
    /// With the brackets of an IPv6 address.
    let host: Range<Int>
    /// Digits; may be empty, as `example.com:` has an empty port.
    let port: Range<Int>

    /// Reads `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2).
    ///
    /// Narrower than the grammar: a name has unreserved bytes only (``ByteSet/hostName``) and no
    /// empty label but for the root's dot at its end, an address in brackets is IPv6 without zone,
    /// a port is at most 65535. `nil` for anything else. `api.example.com..` is no host in DNS, and
    /// some servers take it for `api.example.com`.
    ///
    /// RFC 3986 §3.2.2 also allows sub-delims (`0.0.0.0=5000`) and percent-encoding. DNS has no
    /// host of such a name, so no client of ours sends one, and servers disagree about it. Tried
    /// with `Host: 0.0.0.0=5000`: Apache, lighttpd and Django answer 400; nginx, PHP, Node, Puma,
    /// gunicorn, waitress, uvicorn, aiohttp, tornado and Flask hand the name to the application as
    /// it is. An application that builds links, SQL or log lines of it breaks on `'`, `;` or `,`.
    init?(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        var index = range.lowerBound
        let end = range.upperBound
        guard index < end else { return nil }
        if bytes[index] == UInt8(ascii: "[") {
            while index < end, bytes[index] != UInt8(ascii: "]") { index += 1 }
            guard index < end else { return nil }
            guard IPAddress.isIPv6(bytes, range.lowerBound + 1..<index) else { return nil }
            index += 1
        } else {
            // A label must come at the beginning and after each dot, except a dot at the end.
            var isLabelEmpty = true
            while index < end, ByteSet.hostName.contains(bytes[index]) {
                let isDot = bytes[index] == UInt8(ascii: ".")
                guard !isDot || !isLabelEmpty else { return nil }
                isLabelEmpty = isDot
                index += 1
            }
            guard index > range.lowerBound else { return nil }
        }
        host = range.lowerBound..<index
        guard index < end else {
            port = end..<end
            return
        }
        guard bytes[index] == UInt8(ascii: ":") else { return nil }
        port = index + 1..<end
        var number = 0
        for index in port {
            guard ASCIIByte.isDigit(bytes[index]) else { return nil }
            number = number * 10 + Int(bytes[index] & 0x0F)
            guard number <= 65535 else { return nil }
        }
    }

    /// Whether both are the same host and port, the scheme's default port being the same as none.
    static func same(
        _ bytes: Span<UInt8>,
        _ one: Authority,
        as other: Authority,
        isHTTPS: Bool
    ) -> Bool {
        guard ByteScan.equal(bytes, one.host, to: bytes, at: other.host) else { return false }
        return one.portNumber(bytes, isHTTPS: isHTTPS)
            == other.portNumber(bytes, isHTTPS: isHTTPS)
    }

    private func portNumber(_ bytes: Span<UInt8>, isHTTPS: Bool) -> Int {
        guard !port.isEmpty else { return isHTTPS ? 443 : 80 }
        // At most 65535, as the initialiser saw.
        return port.reduce(0) { $0 &* 10 &+ Int(bytes[$1] & 0x0F) }
    }
}
