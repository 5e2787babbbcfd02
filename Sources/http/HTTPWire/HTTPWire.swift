// HTTP/1.1 bytes: reading and writing heads, bodies and trailers for an intermediary.
//
// Everything here is pure: bytes in, values out, no clock, no descriptor, no lock. Input is a
// `Span<UInt8>` that the caller owns. Results are ranges into it, so a head costs no allocation
// once its storage has grown. Nothing here makes a `String` of a stranger's bytes.
//
//   HeadScanner         finds the end of a head in a growing buffer, and scans each byte once;
//                       rejects at once what can never become a head
//   RequestHead         a complete request head, read strictly: RFC 9112 §§2–6, RFC 9110 §§5–7
//   ResponseHead        a complete response head of an origin, read strictly
//   TargetView          the view of a path that rules match; finds what can't be viewed in one way
//   PathInterpretation  what else servers do to a path: the other ways to look it up
//   BodyReader          length, chunked or until close: ranges of content, exact end, trailers
//   HeadWriter          forwarded heads and local answers, appended to a reusable array
//   ClientAddress       the client's address at the far end of trusted proxies, and those proxies
//   RequestID           the request's name: a trusted proxy's, or the gateway's own
//   ProxyHeader         the PROXY protocol's header, in which a proxy names its client
//   ProvenanceWriter    the fields that name the client to the origin
//   HTTP2               both ends of an HTTP/2 connection, by nghttp2
//
// Life of a request on one event loop, without allocation in steady state:
//
//   1. `scanner.scan(bytes, limits:)` on what was read. `.needMore`: keep the bytes, the scanner.
//   2. On `.complete(range)`: `head.read(bytes.extracting(range), ...)`. All ranges of `head`
//      count from the first byte of that span.
//   3. `view.read(bytes, head.path)`; match rules against `view`; `view.refusal(allowing:)`.
//   4. `HeadWriter.beginRequest(...)`, own fields by `HeadWriter.field`, `HeadWriter.endHead`.
//   5. `body.read(bytes, from: &position)` until it says `.finished`; `position` then is the first
//      byte of the next request.
//
// Strictness. Where RFC 9112 lets a recipient be lenient, this module is not: CRLF only, one space,
// no obs-fold, `Transfer-Encoding` exactly `chunked`, `Content-Length` once. Each leniency that was
// left out has let requests be smuggled past another proxy. A malformed head always ends the
// connection. Two exceptions concern origins, which we don't choose: a status line without the
// space before an empty reason, and white space before the colon of a response field, which
// RFC 9112 §5.1 asks an intermediary to remove.

/// The bounds of what is read, one value for a listener or a pool of origins.
///
/// A head or trailer section beyond a bound is malformed; see ``Malformed/Reason``.
package struct HeadLimits: Hashable, Sendable {
    /// The most bytes from the first of the start line to the blank line.
    ///
    /// Default 16 KiB, allowed 1 KiB…1 MiB. A larger head is answered 431 (RFC 6585 §5).
    /// Others: h11 16 KiB, IIS 16 KiB, Tomcat 8 KiB.
    package var headBytesMax: Int = 16 * 1024

    /// The most bytes of a request target.
    ///
    /// Default 8 KiB, allowed 256…1 MiB. A longer one is answered 414. RFC 9112 §3 recommends 8000.
    package var targetBytesMax: Int = 8 * 1024

    /// The most bytes of a method.
    ///
    /// Default 32, allowed 8…256. The longest registered one has 17 (`UPDATEREDIRECTREF`).
    package var methodBytesMax: Int = 32

    /// The most field lines of a head.
    ///
    /// Default 100, allowed 10…1000. More are answered 431.
    package var fieldsMax: Int = 100

    /// The most bytes of a field name.
    ///
    /// Default 256, allowed 32…1024. A longer one is answered 431; HAProxy took one of 270 bytes
    /// for `Content-Length` once (CVE-2021-40346).
    package var fieldNameBytesMax: Int = 256

    /// The most bytes of a trailer section.
    ///
    /// Default 4 KiB, allowed 0…64 KiB.
    package var trailerBytesMax: Int = 4 * 1024

    /// The most field lines of a trailer section.
    ///
    /// Default 32, allowed 0…100.
    package var trailerFieldsMax: Int = 32

    /// The most bytes of chunk extensions in one message, all chunks together.
    ///
    /// Default 4 KiB, allowed 0…64 KiB. RFC 9112 §7.1.1 asks for a bound on the total.
    package var chunkExtensionBytesMax: Int = 4 * 1024

    package init() {}
}

/// Input that is not a well-formed message, and where.
///
/// The connection can't be used any more: its framing is unknown. A request is answered by the
/// table in `Services`, with `Connection: close`. A response is discarded, its connection closed,
/// and the client told 502 (or cut off, when the head was forwarded already).
package struct Malformed: Error, Sendable {
    package let reason: Reason
    /// Index of the byte, counted from the start of the span that was read. For people; not
    /// compared.
    package let offset: Int

    package init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}

extension Malformed: Equatable {
    package static func == (one: Malformed, other: Malformed) -> Bool { one.reason == other.reason }
}

extension Malformed {
    /// What was wrong. The raw value is the metric label and the log field; add rather than rename.
    package enum Reason: String, CaseIterable, Sendable {
        // Lines.
        case bareLineFeed = "bare-line-feed"
        case bareCarriageReturn = "bare-carriage-return"
        case controlByte = "control-byte"
        case emptyLinesBeforeHead = "empty-lines-before-head"
        case headTooLong = "head-too-long"
        // Request line.
        case methodSyntax = "method-syntax"
        case methodTooLong = "method-too-long"
        case methodRefused = "method-refused"
        case methodCase = "method-case"
        case requestLineSyntax = "request-line-syntax"
        case targetByte = "target-byte"
        case targetFragment = "target-fragment"
        case targetTooLong = "target-too-long"
        case targetForm = "target-form"
        case targetAuthority = "target-authority"
        case targetUserinfo = "target-userinfo"
        case targetScheme = "target-scheme"
        case versionSyntax = "version-syntax"
        case versionUnsupported = "version-unsupported"
        // Fields.
        case obsoleteFold = "obsolete-fold"
        case fieldNameSyntax = "field-name-syntax"
        case fieldNameTooLong = "field-name-too-long"
        case colonMissing = "colon-missing"
        case fieldsTooMany = "fields-too-many"
        case fieldRepeated = "field-repeated"
        case underscoreTwin = "underscore-twin"
        case hostMissing = "host-missing"
        case hostInvalid = "host-invalid"
        case hostDiffers = "host-differs"
        case connectionOption = "connection-option"
        case connectionNomination = "connection-nomination"
        case expectation = "expectation"
        // Framing.
        case contentLengthSyntax = "content-length-syntax"
        case contentLengthOverflow = "content-length-overflow"
        case contentLengthRepeated = "content-length-repeated"
        case transferEncodingSyntax = "transfer-encoding-syntax"
        case transferEncodingRepeated = "transfer-encoding-repeated"
        case transferEncodingUnknown = "transfer-encoding-unknown"
        case transferEncodingVersion = "transfer-encoding-version"
        case twoFramings = "two-framings"
        // Path.
        case pathEscape = "path-escape"
        case pathDotSegment = "path-dot-segment"
        case pathControl = "path-control"
        case pathBackslash = "path-backslash"
        case pathEncodedSlash = "path-encoded-slash"
        case pathEncodedBackslash = "path-encoded-backslash"
        case pathEncoding = "path-encoding"
        // Body.
        case chunkSizeSyntax = "chunk-size-syntax"
        case chunkSizeOverflow = "chunk-size-overflow"
        case chunkExtensionSyntax = "chunk-extension-syntax"
        case chunkExtensionsTooLong = "chunk-extensions-too-long"
        case chunkDataEnd = "chunk-data-end"
        case trailersTooLong = "trailers-too-long"
        case bodyTruncated = "body-truncated"
        // Response.
        case statusLineSyntax = "status-line-syntax"
        case statusUnknown = "status-unknown"
        case upgradeUnasked = "upgrade-unasked"
    }
}
