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
        case pathAmbiguous = "path-ambiguous"
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
