import Encodings

/// Writes the fields of a request as the head of an HTTP/1.1 request, so that one parser reads all
/// heads.
///
/// Pseudo-fields come first (RFC 9113 §8.3). They become the request line and Host. Content whose
/// length is not said is `chunked`, which no client can say by itself: HTTP/2 has no
/// Transfer-Encoding (RFC 9113 §8.2.2). Cookie fields become one (RFC 9113 §8.2.3).
///
/// Names and values are nghttp2's memory. It lives for the call, and what is kept is copied.
package struct RequestHeadBuilder {
    /// A head that was written, or why there is none.
    package struct Built: Equatable {
        /// Within ``RequestHeadBuilder/bytes``.
        package var range: Range<Int>
        package var fault: Malformed.Reason?
    }

    /// All heads that were not forgotten.
    package private(set) var bytes: [UInt8] = []
    private var start = 0
    private var fault: Malformed.Reason?
    /// Bytes that the head has or would have.
    private(set) var count = 0
    private var fieldCount = 0
    private var isLineWritten = false
    private var saysLength = false
    private var hasHost = false
    private var method: [UInt8] = []
    private var scheme: [UInt8] = []
    private var path: [UInt8] = []
    private var authority: [UInt8] = []
    private var cookie: [UInt8] = []
    /// Whether the fields are those of an HTTP/2 request, whose client may divide one Cookie.
    var joinsCookies = true
    private var protocolName: [UInt8] = []
    /// The request asks for WebSocket by extended CONNECT (RFC 8441 §4).
    package private(set) var asksTunnel = false
    /// A random number from which WebSocket keys are made.
    private var nonce: UInt64

    /// - nonce: random, and another one for each connection.
    package init(nonce: UInt64) { self.nonce = nonce }

    /// Forgets all heads but the one that is under way.
    mutating func forgetTaken() {
        bytes.removeSubrange(..<start)
        start = 0
    }

    /// Exchanges its memory for another's. Neither has a head.
    mutating func exchangeMemory(with other: inout RequestHeadBuilder) {
        swap(&bytes, &other.bytes)
        swap(&method, &other.method)
        swap(&scheme, &other.scheme)
        swap(&path, &other.path)
        swap(&authority, &other.authority)
        swap(&cookie, &other.cookie)
        swap(&protocolName, &other.protocolName)
    }

    /// Forgets all heads, and gives their memory to the system.
    mutating func forgetAll() { self = RequestHeadBuilder(nonce: nonce) }

    /// Forgets all heads, and keeps their memory.
    mutating func empty() { bytes.removeAll(keepingCapacity: true) }

    /// The number of bytes for which it has memory.
    var capacity: Int { bytes.capacity }

    /// Forgets a head that has no taker, if it is the newest.
    mutating func forget(_ built: Built) {
        guard built.range.upperBound == bytes.count else { return }
        bytes.removeSubrange(built.range)
        start = min(start, bytes.count)
    }

    package mutating func begin() {
        start = bytes.count
        fault = nil
        count = 0
        fieldCount = 0
        isLineWritten = false
        saysLength = false
        hasHost = false
        method.removeAll(keepingCapacity: true)
        scheme.removeAll(keepingCapacity: true)
        path.removeAll(keepingCapacity: true)
        authority.removeAll(keepingCapacity: true)
        // Most requests have neither, and emptying an empty array has its price, too.
        if !cookie.isEmpty { cookie.removeAll(keepingCapacity: true) }
        if !protocolName.isEmpty { protocolName.removeAll(keepingCapacity: true) }
        asksTunnel = false
    }

    /// Takes a field. ``HTTP2Ledger`` bounds those beyond the bound of a head.
    package mutating func add(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>,
        within limits: HeadLimits
    ) {
        unsafe count += Self.length(name, value)
        guard count <= limits.headBytesMax else { return note(.headTooLong) }
        guard fault == nil else { return }
        guard unsafe name.first != UInt8(ascii: ":") else {
            return unsafe addPseudoField(name, value)
        }
        if !isLineWritten { writeLine() }
        fieldCount += 1
        guard fieldCount <= limits.fieldsMax else { return note(.fieldsTooMany) }
        unsafe addField(name, value)
    }

    /// Bytes of a field's line. Both lengths are bounded by nghttp2 at 64 KiB.
    static func length(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>
    ) -> Int { name.count + value.count + 4 }

    /// Why a field can't stand in a line of HTTP/1.1's; `nil` when it can.
    static func fault(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>
    ) -> Malformed.Reason? {
        guard !name.isEmpty, unsafe name.allSatisfy({ $0 > 0x20 && $0 != 0x3A && $0 != 0x7F })
        else {
            return .fieldNameSyntax
        }
        let firstControl = unsafe ByteScan.control(in: value.span, from: 0, to: value.count)
        return firstControl == value.count ? nil : .controlByte
    }

    private mutating func note(_ reason: Malformed.Reason) {
        if fault == nil { fault = reason }
    }

    private mutating func addPseudoField(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>
    ) {
        // What ends a part of the request line must not be in one.
        guard unsafe value.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return note(.targetByte) }
        if unsafe Self.equal(name, ":method") {
            unsafe method.append(contentsOf: value)
        } else if unsafe Self.equal(name, ":path") {
            unsafe path.append(contentsOf: value)
        } else if unsafe Self.equal(name, ":scheme") {
            unsafe scheme.append(contentsOf: value)
        } else if unsafe Self.equal(name, ":authority") {
            unsafe authority.append(contentsOf: value)
        } else if unsafe Self.equal(name, ":protocol") {
            unsafe protocolName.append(contentsOf: value)
        } else {
            note(.fieldNameSyntax)
        }
    }

    private mutating func addField(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>
    ) {
        if let fault = unsafe Self.fault(name, value) { return note(fault) }
        switch name.count {
        case 4 where unsafe Self.equal(name, "host"):
            guard hasHost else { break }
            // RFC 9113 §8.3.1: both are one statement.
            if unsafe !Self.isSame(value, authority) { note(.hostDiffers) }
            return
        case 6 where unsafe joinsCookies && Self.equal(name, "cookie"):
            if !cookie.isEmpty { cookie += [UInt8(ascii: ";"), 0x20] }
            return unsafe cookie.append(contentsOf: value)
        case 14 where unsafe Self.equal(name, "content-length"): saysLength = true
        // It has no meaning here (RFC 8441 §5), and the origin gets the gateway's.
        case 17 where unsafe asksTunnel && Self.equal(name, "sec-websocket-key"): return
        case 17 where unsafe Self.equal(name, "transfer-encoding"): return note(.connectionOption)
        case 10 where unsafe Self.equal(name, "connection"): return note(.connectionOption)
        default: break
        }
        unsafe Self.appendLine(name, value, to: &bytes)
    }

    private mutating func writeLine() {
        isLineWritten = true
        let isConnect = Self.equal(method, "CONNECT")
        guard isConnect || protocolName.isEmpty else { return note(.fieldNameSyntax) }
        asksTunnel = isConnect && Self.equal(protocolName, "websocket")
        if isConnect, !asksTunnel {
            // A CONNECT without WebSocket is refused by its method, whatever its target.
            path = [UInt8(ascii: "/")]
        } else {
            // Another scheme could have a path that is an absolute-form target here.
            guard Self.equal(scheme, "https") || Self.equal(scheme, "http") else {
                return note(.targetScheme)
            }
            guard path.first == UInt8(ascii: "/") || Self.equal(path, "*") else {
                return note(.targetForm)
            }
        }
        // In HTTP/1.1 a handshake is a GET (RFC 6455 §4.1): rules and signatures take it as one.
        if asksTunnel { bytes.append("GET") } else { bytes += method }
        bytes.append(0x20)
        bytes += path
        bytes.append(" HTTP/1.1\r\n")
        if asksTunnel { writeHandshake() }
        guard !authority.isEmpty else { return }
        hasHost = true
        bytes.append("host: ")
        bytes += authority
        bytes.append("\r\n")
    }

    /// Writes the fields that ask an HTTP/1.1 server for WebSocket (RFC 6455 §4.1).
    private mutating func writeHandshake() {
        // The key shows the client that the server speaks WebSocket. It keeps nothing secret.
        var key: [UInt8] = []
        for _ in 0..<2 {
            // A step of SplitMix64: each key is another one.
            nonce &+= 0x9E37_79B9_7F4A_7C15
            var word = (nonce ^ nonce >> 30) &* 0xBF58_476D_1CE4_E5B9
            word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
            word ^= word >> 31
            key += stride(from: 0, to: 64, by: 8).map { UInt8(truncatingIfNeeded: word >> $0) }
        }
        bytes.append("connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: ")
        Base64.append(key.span, to: &bytes)
        bytes.append("\r\n")
    }

    /// All fields were taken.
    ///
    /// - hasContent: content may follow.
    package mutating func end(hasContent: Bool) -> Built {
        if !isLineWritten, fault == nil { writeLine() }
        if !cookie.isEmpty {
            bytes.append("cookie: ")
            bytes += cookie
            bytes.append("\r\n")
        }
        if hasContent, !saysLength, !asksTunnel { bytes.append("transfer-encoding: chunked\r\n") }
        bytes.append("\r\n")
        if fault != nil { bytes.removeSubrange(start...) }
        return Built(range: start..<bytes.count, fault: fault)
    }

    /// Whether the client asked for an https target.
    package var isHTTPS: Bool { Self.equal(scheme, "https") }

    /// Appends a field's line, as one piece: a head has many, and each piece may grow the array.
    static func appendLine(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>,
        to bytes: inout [UInt8]
    ) {
        let count = unsafe length(name, value)
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: count) { line in
            // All of it is written, in order, before it is read.
            var end = unsafe line.initialize(fromContentsOf: name)
            unsafe line.initializeElement(at: end, to: UInt8(ascii: ":"))
            unsafe line.initializeElement(at: end + 1, to: 0x20)
            end = unsafe line[(end + 2)...].initialize(fromContentsOf: value)
            unsafe line.initializeElement(at: end, to: 0x0D)
            unsafe line.initializeElement(at: end + 1, to: 0x0A)
            unsafe bytes.append(contentsOf: UnsafeBufferPointer(line))
        }
    }

    static func equal(_ bytes: UnsafeBufferPointer<UInt8>, _ text: StaticString) -> Bool {
        guard bytes.count == text.utf8CodeUnitCount else { return false }
        return text.withUTF8Buffer { text in
            for index in 0..<text.count where unsafe bytes[index] != text[index] { return false }
            return true
        }
    }

    private static func equal(_ bytes: [UInt8], _ text: StaticString) -> Bool {
        unsafe bytes.withUnsafeBufferPointer { unsafe equal($0, text) }
    }

    /// Whether two hosts are equal but for case.
    private static func isSame(_ one: UnsafeBufferPointer<UInt8>, _ other: [UInt8]) -> Bool {
        func folded(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }
        return unsafe one.count == other.count
            && zip(one, other).allSatisfy { folded($0) == folded($1) }
    }
}
