import Encodings

/// Writes the fields of a response as the head of an HTTP/1.1 response, so that one parser reads
/// all heads.
///
/// `:status` becomes the status line. Content whose length is not said is `chunked`, which no
/// server can say by itself: HTTP/2 has no Transfer-Encoding (RFC 9113 §8.2.2). Trailers become
/// field lines.
///
/// Names and values are nghttp2's memory. It lives for the call, and what is kept is copied.
package struct ResponseHeadBuilder {
    /// What the fields are.
    package enum Section {
        case head
        case trailers
    }

    /// A head, or the lines of a trailer section, with the blank line.
    package struct Built: Equatable {
        package var bytes: [UInt8]
        /// Why it is malformed; then it has no bytes.
        package var fault: Malformed.Reason?
        /// 1xx: another head follows.
        package var isInterim = false
    }

    /// The memory of one head after another.
    private var bytes: [UInt8] = []
    private var fault: Malformed.Reason?
    /// Bytes that the section has or would have.
    private(set) var count = 0
    private var fieldCount = 0
    private var bytesMax = 0
    private var fieldsMax = 0
    private var status = 0
    private var saysLength = false

    /// The most memory that is kept.
    private static let keptMax = 4 << 10

    package init() {}

    package mutating func begin(_ section: Section, _ limits: HeadLimits) {
        forget()
        switch section {
        case .head: (bytesMax, fieldsMax) = (limits.headBytesMax, limits.fieldsMax)
        case .trailers: (bytesMax, fieldsMax) = (limits.trailerBytesMax, limits.trailerFieldsMax)
        }
    }

    /// The memory is kept: few connections go to servers, and each carries many requests.
    private mutating func forget() {
        if bytes.capacity > Self.keptMax { bytes = [] }
        if !bytes.isEmpty { bytes.removeAll(keepingCapacity: true) }
        fault = nil
        (count, fieldCount, status, saysLength) = (0, 0, 0, false)
    }

    /// Takes a field. ``HTTP2Ledger`` bounds those beyond the bound of a head.
    package mutating func add(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>
    ) {
        unsafe count += RequestHeadBuilder.length(name, value)
        guard count <= bytesMax else { return note(.headTooLong) }
        guard fault == nil else { return }
        guard unsafe name.first != UInt8(ascii: ":") else { return unsafe addStatus(name, value) }
        fieldCount += 1
        guard fieldCount <= fieldsMax else { return note(.fieldsTooMany) }
        unsafe addField(name, value)
    }

    private mutating func note(_ reason: Malformed.Reason) {
        if fault == nil { fault = reason }
    }

    /// RFC 9113 §8.3.2. Trailers have no such field.
    private mutating func addStatus(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>
    ) {
        let isDigits = unsafe value.allSatisfy { $0 &- 0x30 < 10 }
        guard unsafe RequestHeadBuilder.equal(name, ":status"), status == 0, bytes.isEmpty,
            value.count == 3, isDigits
        else { return note(.statusLineSyntax) }
        status = unsafe value.reduce(0) { $0 * 10 + Int($1 & 0x0F) }
        bytes.append("HTTP/1.1 ")
        unsafe bytes.append(contentsOf: value)
        bytes.append(0x20)
        bytes.append(ReasonPhrase.of(status))
        bytes.append("\r\n")
    }

    private mutating func addField(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>
    ) {
        if let fault = unsafe RequestHeadBuilder.fault(name, value) { return note(fault) }
        switch name.count {
        case 14 where unsafe RequestHeadBuilder.equal(name, "content-length"): saysLength = true
        case 17 where unsafe RequestHeadBuilder.equal(name, "transfer-encoding"),
            10 where unsafe RequestHeadBuilder.equal(name, "connection"):
            return note(.connectionOption)
        default: break
        }
        unsafe RequestHeadBuilder.appendLine(name, value, to: &bytes)
    }

    /// All fields of a head were taken.
    ///
    /// - isLast: the stream ends with it.
    /// - isHead: it answers HEAD.
    package mutating func endHead(isLast: Bool, isHead: Bool) -> Built {
        if status == 0 { note(.statusLineSyntax) }
        let isInterim = status > 0 && status < 200
        let mayHaveContent = !isHead && !isInterim && status != 204 && status != 304
        if mayHaveContent, !saysLength {
            let framing: StaticString =
                isLast ? "content-length: 0\r\n" : "transfer-encoding: chunked\r\n"
            bytes.append(framing)
        }
        var built = endTrailers()
        built.isInterim = isInterim
        return built
    }

    /// All fields of trailers were taken.
    package mutating func endTrailers() -> Built {
        bytes.append("\r\n")
        defer { forget() }
        // A copy of just this size: the memory here is used again.
        let built = unsafe fault == nil ? bytes.withUnsafeBufferPointer { unsafe Array($0) } : []
        return Built(bytes: built, fault: fault)
    }
}
