import HTTPWire
import Verification

extension LocalRow {
    /// The rows of malformed requests. A malformed response of an origin is always 502; see
    /// ``OriginFailure/responseMalformed``.
    static func malformed(_ reason: Malformed.Reason) -> LocalRow {
        LocalRow(status(of: reason), .client, .fixClient, title(of: reason)).endingConnection
    }

    private static func status(of reason: Malformed.Reason) -> Int {
        switch reason {
        case .bareLineFeed, .bareCarriageReturn, .controlByte, .emptyLinesBeforeHead,
            .methodSyntax, .methodTooLong, .methodCase, .requestLineSyntax, .targetByte,
            .targetFragment, .targetForm, .targetAuthority, .targetUserinfo, .targetScheme,
            .versionSyntax,
            .obsoleteFold, .fieldNameSyntax, .colonMissing, .fieldRepeated, .underscoreTwin,
            .hostMissing, .hostInvalid, .hostDiffers, .connectionOption, .connectionNomination,
            .contentLengthSyntax, .contentLengthOverflow, .contentLengthRepeated,
            .transferEncodingSyntax, .transferEncodingRepeated, .transferEncodingVersion,
            .twoFramings, .pathEscape,
            .pathDotSegment, .pathControl, .pathBackslash, .pathEncodedSlash,
            .pathEncodedBackslash, .pathEncoding, .chunkSizeSyntax, .chunkSizeOverflow,
            .chunkExtensionSyntax, .chunkExtensionsTooLong, .chunkDataEnd,
            .bodyTruncated:
            // RFC 9112 §2.2 ¶9, §3 ¶3, §5.1, §6.3. A method beyond its bound is here too: RFC 9112
            // §3 would have 501 for one longer than any known, but it was not read to its end. By
            // RFC 9110 §9.1 `post` is another method than `POST`; see RegisteredMethod.
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
            // RFC 9112 §6.1 ¶8. CONNECT and TRACE: a 405 would have to list the allowed methods
            // (RFC 9110 §15.5.6), and no rule was looked up yet.
            501
        case .statusLineSyntax, .statusUnknown, .upgradeUnasked: 502
        case .versionUnsupported:
            // RFC 9110 §15.6.6.
            505
        }
    }

    /// One line for people. It tells the sender only what the sender knows.
    private static func title(of reason: Malformed.Reason) -> String {
        switch reason {
        case .bareLineFeed: "A line ends in LF without CR."
        case .bareCarriageReturn: "CR without LF."
        case .controlByte: "A control byte in the head."
        case .emptyLinesBeforeHead: "Too many empty lines before the request."
        case .headTooLong: "The head is too long."
        case .methodSyntax: "The method is not a token."
        case .methodTooLong: "The method is too long."
        case .methodRefused: "CONNECT and TRACE are not served."
        case .methodCase: "The method is not written in upper case."
        case .requestLineSyntax: "The request line is not: method, target, version."
        case .targetByte: "A byte that no request target has."
        case .targetFragment: "The request target has a fragment."
        case .targetTooLong: "The request target is too long."
        case .targetForm: "The request target has none of the allowed forms."
        case .targetAuthority: "The authority in the request target is invalid."
        case .targetUserinfo: "The request target has user information."
        case .targetScheme:
            "The target's scheme is not http, or it is https on a connection without TLS."
        case .versionSyntax: "The version is not HTTP/1.1 or HTTP/1.0."
        case .versionUnsupported: "This HTTP version is not served."
        case .obsoleteFold: "A field line starts with white space."
        case .fieldNameSyntax: "A field name is not a token."
        case .fieldNameTooLong: "A field name is too long."
        case .colonMissing: "A field line has no colon."
        case .fieldsTooMany: "Too many field lines."
        case .fieldRepeated: "A field that may occur once is repeated."
        case .underscoreTwin: "Another spelling of a framing field."
        case .hostMissing: "HTTP/1.1 without Host."
        case .hostInvalid: "Host is no IP address and no name of letters, digits and -._~."
        case .hostDiffers: "Host differs from the request target."
        case .connectionOption: "Connection is not a list of tokens."
        case .connectionNomination: "Connection names a field that is not of one hop."
        case .expectation: "Only 100-continue can be expected."
        case .contentLengthSyntax: "Content-Length is not a number."
        case .contentLengthOverflow: "Content-Length is too large."
        case .contentLengthRepeated: "Content-Length is repeated."
        case .transferEncodingSyntax: "Transfer-Encoding is not exactly chunked."
        case .transferEncodingRepeated: "Transfer-Encoding is repeated."
        case .transferEncodingUnknown: "An unknown transfer coding."
        case .transferEncodingVersion: "Transfer-Encoding in HTTP/1.0."
        case .twoFramings: "Transfer-Encoding together with Content-Length."
        case .pathEscape: "An incomplete percent-encoding in the path."
        case .pathDotSegment: "A dot segment in the path."
        case .pathControl: "An encoded control byte in the path."
        case .pathBackslash: "A backslash in the path."
        case .pathEncodedSlash: "An encoded slash in the path."
        case .pathEncodedBackslash: "An encoded backslash in the path."
        case .pathEncoding: "The path is not UTF-8 once decoded."
        case .chunkSizeSyntax: "A chunk size is not a hexadecimal number."
        case .chunkSizeOverflow: "A chunk size is too large."
        case .chunkExtensionSyntax: "A malformed chunk extension."
        case .chunkExtensionsTooLong: "The chunk extensions are too long."
        case .chunkDataEnd: "Chunk data does not end in CRLF."
        case .trailersTooLong: "The trailer section is too long."
        case .bodyTruncated: "The body ended early."
        case .statusLineSyntax: "The status line is malformed."
        case .statusUnknown: "The status is not in 100…599."
        case .upgradeUnasked: "Status 101 where no Upgrade was asked for."
        }
    }
}
