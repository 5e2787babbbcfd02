extension Malformed.Reason {
    /// The status that answers a malformed request. A malformed response is always 502.
    package var status: Int {
        switch self {
        case .bareLineFeed, .bareCarriageReturn, .controlOctet, .emptyLinesBeforeHead,
            .methodSyntax, .methodTooLong, .methodCase, .requestLineSyntax, .targetOctet,
            .targetFragment, .targetForm, .targetAuthority, .targetUserinfo, .targetScheme,
            .versionSyntax,
            .obsoleteFold, .fieldNameSyntax, .colonMissing, .fieldRepeated, .underscoreTwin,
            .hostMissing, .hostInvalid, .hostDiffers, .connectionOption, .connectionNomination,
            .contentLengthSyntax, .contentLengthOverflow, .contentLengthRepeated,
            .transferEncodingSyntax, .transferEncodingRepeated, .transferEncodingVersion,
            .twoFramings, .pathEscape,
            .pathDotSegment, .pathControl, .pathBackslash, .pathEncodedSlash,
            .pathEncodedBackslash, .pathEncoding, .pathAmbiguous, .chunkSizeSyntax,
            .chunkSizeOverflow, .chunkExtensionSyntax, .chunkExtensionsTooLong, .chunkDataEnd,
            .bodyTruncated:
            // RFC 9112 §2.2 ¶9, §3 ¶3, §5.1, §6.3. A method beyond its bound is here too: RFC 9112
            // §3 would have 501 for one longer than any known, but it was not read to its end. RFC
            // 9110 §9.1 has `post` for a method of its own; see RegisteredMethod.
            400
        case .targetTooLong:
            // RFC 9112 §3 ¶4.
            414
        case .expectation:
            // RFC 9110 §10.1.1.
            417
        case .headTooLong, .fieldNameTooLong, .fieldsTooMany, .trailersTooLong:
            // RFC 6585 §5.
            431
        case .methodRefused, .transferEncodingUnknown:
            // RFC 9112 §6.1 ¶8. CONNECT and TRACE: 405 would have to list what is allowed (RFC 9110
            // §15.5.6), and no rule was asked yet.
            501
        case .statusLineSyntax, .statusUnknown, .upgradeUnasked:
            502
        case .versionUnsupported:
            // RFC 9110 §15.6.6.
            505
        }
    }

    /// One line for people; it tells the sender nothing that the sender does not know.
    package var summary: StaticString {
        switch self {
        case .bareLineFeed: "a line ends in LF without CR"
        case .bareCarriageReturn: "CR without LF"
        case .controlOctet: "a control octet in the head"
        case .emptyLinesBeforeHead: "too many empty lines before the request"
        case .headTooLong: "the head is too long"
        case .methodSyntax: "the method is not a token"
        case .methodTooLong: "the method is too long"
        case .methodRefused: "CONNECT and TRACE are not served"
        case .methodCase: "the method is not written in upper case"
        case .requestLineSyntax: "the request line is not: method, target, version"
        case .targetOctet: "an octet that no request target has"
        case .targetFragment: "the request target has a fragment"
        case .targetTooLong: "the request target is too long"
        case .targetForm: "the request target has none of the allowed forms"
        case .targetAuthority: "the authority in the request target is invalid"
        case .targetUserinfo: "the request target has user information"
        case .targetScheme: "an https target on a connection without TLS"
        case .versionSyntax: "the version is not HTTP/1.1 or HTTP/1.0"
        case .versionUnsupported: "this HTTP version is not served"
        case .obsoleteFold: "a field line starts with white space"
        case .fieldNameSyntax: "a field name is not a token"
        case .fieldNameTooLong: "a field name is too long"
        case .colonMissing: "a field line has no colon"
        case .fieldsTooMany: "too many field lines"
        case .fieldRepeated: "a field that may occur once is repeated"
        case .underscoreTwin: "another spelling of a framing field"
        case .hostMissing: "HTTP/1.1 without Host"
        case .hostInvalid: "Host is not a host and port"
        case .hostDiffers: "Host differs from the request target"
        case .connectionOption: "Connection is not a list of tokens"
        case .connectionNomination: "Connection names a field that is not of one hop"
        case .expectation: "only 100-continue can be expected"
        case .contentLengthSyntax: "Content-Length is not a number"
        case .contentLengthOverflow: "Content-Length is too large"
        case .contentLengthRepeated: "Content-Length is repeated"
        case .transferEncodingSyntax: "Transfer-Encoding is not exactly chunked"
        case .transferEncodingRepeated: "Transfer-Encoding is repeated"
        case .transferEncodingUnknown: "an unknown transfer coding"
        case .transferEncodingVersion: "Transfer-Encoding in HTTP/1.0"
        case .twoFramings: "Transfer-Encoding together with Content-Length"
        case .pathEscape: "an incomplete percent-encoding in the path"
        case .pathDotSegment: "a dot segment in the path"
        case .pathControl: "an encoded control octet in the path"
        case .pathBackslash: "a backslash in the path"
        case .pathEncodedSlash: "an encoded slash in the path"
        case .pathEncodedBackslash: "an encoded backslash in the path"
        case .pathEncoding: "the path is not UTF-8 once decoded"
        case .pathAmbiguous: "servers differ on what the path is"
        case .chunkSizeSyntax: "a chunk size is not a hexadecimal number"
        case .chunkSizeOverflow: "a chunk size is too large"
        case .chunkExtensionSyntax: "a malformed chunk extension"
        case .chunkExtensionsTooLong: "the chunk extensions are too long"
        case .chunkDataEnd: "chunk data does not end in CRLF"
        case .trailersTooLong: "the trailer section is too long"
        case .bodyTruncated: "the body ended early"
        case .statusLineSyntax: "the status line is malformed"
        case .statusUnknown: "the status is not in 100…599"
        case .upgradeUnasked: "101 to what no Upgrade asked for"
        }
    }
}
