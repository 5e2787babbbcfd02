/// How the content of a message is delimited.
package enum BodyFraming: Equatable, Sendable {
    /// No content, whatever the fields say.
    case none
    /// Exactly this number of bytes.
    case length(UInt64)
    /// Chunked transfer coding (RFC 9112 §7.1).
    case chunked
    /// Until the connection closes; responses only.
    case untilClose

    /// Whether content follows the head.
    package var hasContent: Bool {
        switch self {
        case .none, .length(0): false
        case .length, .chunked, .untilClose: true
        }
    }
}

extension BodyFraming {
    /// The framing of a request: RFC 9112 §6.3. Rules 1, 2 and 8 are for responses.
    init(
        requestFields fields: borrowing FieldSection,
        _ bytes: Span<UInt8>,
        version: HTTPVersion
    ) throws(Malformed) {
        // 7. Neither field: no content.
        self = try Self.announced(fields, bytes, version: version) ?? BodyFraming.none
    }

    /// The framing of a response: RFC 9112 §6.3, whose numbers the comments carry.
    ///
    /// The fields are checked even where rule 1 leaves no content, since they may be forwarded.
    init(
        responseFields fields: borrowing FieldSection,
        _ bytes: Span<UInt8>,
        version: HTTPVersion,
        status: Int,
        to method: Method
    ) throws(Malformed) {
        // 8. Neither field: until close.
        let framing = try Self.announced(fields, bytes, version: version) ?? BodyFraming.untilClose
        // 1. HEAD, 1xx, 204 and 304 never have content. (2 is about CONNECT, which is not served.)
        let hasNone = method == .head || status < 200 || status == 204 || status == 304
        self = hasNone ? .none : framing
    }

    /// The framing that the fields of a message announce; `nil` when none does. The comments have
    /// the numbers of RFC 9112 §6.3.
    private static func announced(
        _ fields: borrowing FieldSection,
        _ bytes: Span<UInt8>,
        version: HTTPVersion
    ) throws(Malformed) -> BodyFraming? {
        if let coding = fields.first(.transferEncoding) {
            // §6.1 ¶10: HTTP/1.0 has no transfer codings; a sender of one is not to be trusted.
            guard version == .http11 else {
                throw Malformed(.transferEncodingVersion, at: coding.value.lowerBound)
            }
            // 3. Both fields: an attempt to smuggle, or an error; refused instead of repaired.
            guard !fields.contains(.contentLength) else {
                throw Malformed(.twoFramings, at: coding.value.lowerBound)
            }
            // 4. Chunked must be the last coding; here it must be the only one. A response with
            // another coding would last until close, and could only be forwarded to clients that
            // know the coding.
            try checkChunked(fields, bytes, coding: coding)
            return .chunked
        }
        guard let length = fields.first(.contentLength) else { return nil }
        // 5. An invalid length is an unrecoverable error; a list of equal values too.
        guard !fields.repeatedKinds.contains(.contentLength) else {
            throw Malformed(.contentLengthRepeated, at: length.value.lowerBound)
        }
        // 6. A valid length is the length.
        return .length(try ContentLength.read(bytes, length.value))
    }

    /// `Transfer-Encoding` must be one line and exactly `chunked`, case aside (RFC 9112 §7).
    private static func checkChunked(
        _ fields: borrowing FieldSection,
        _ bytes: Span<UInt8>,
        coding: Field
    ) throws(Malformed) {
        let value = coding.value
        guard !fields.repeatedKinds.contains(.transferEncoding) else {
            throw Malformed(.transferEncodingRepeated, at: value.lowerBound)
        }
        guard !ByteScan.equal(bytes, value, to: "chunked") else { return }
        // A single token is a coding that we don't know. Anything else is an attempt to hide
        // chunked, or a list.
        var isToken = !value.isEmpty
        for index in value where !ByteSet.token.contains(bytes[index]) { isToken = false }
        throw Malformed(
            isToken ? .transferEncodingUnknown : .transferEncodingSyntax,
            at: value.lowerBound
        )
    }
}

/// `Content-Length = 1*DIGIT` (RFC 9110 §8.6).
enum ContentLength {
    /// The greatest length that is accepted, 2⁶³ − 1: other software may hold a length in a signed
    /// word, which must not turn negative there.
    static var max: UInt64 { UInt64(Int64.max) }

    /// Reads a value; leading zeros are allowed.
    ///
    /// Throws `content-length-syntax`, `content-length-overflow`.
    static func read(_ bytes: Span<UInt8>, _ value: Range<Int>) throws(Malformed) -> UInt64 {
        guard isNumber(bytes, value) else {
            throw Malformed(.contentLengthSyntax, at: value.lowerBound)
        }
        guard let length = number(bytes, value) else {
            throw Malformed(.contentLengthOverflow, at: value.lowerBound)
        }
        return length
    }

    /// Whether a value is `1*DIGIT`.
    static func isNumber(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
        for index in value where !ASCIIByte.isDigit(bytes[index]) { return false }
        return !value.isEmpty
    }

    /// The number that the digits stand for; `nil` above ``max``.
    static func number(_ bytes: Span<UInt8>, _ digits: Range<Int>) -> UInt64? {
        var number: UInt64 = 0
        for index in digits {
            let (tens, overflows) = number.multipliedReportingOverflow(by: 10)
            let (sum, overflowsToo) = tens.addingReportingOverflow(UInt64(bytes[index] & 0x0F))
            guard !overflows, !overflowsToo, sum <= max else { return nil }
            number = sum
        }
        return number
    }
}
