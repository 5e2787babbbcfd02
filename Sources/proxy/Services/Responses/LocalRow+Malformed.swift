import HTTPWire
import Verification

extension LocalRow {
    /// The rows of refusals at the enrolment endpoints. They are those of ``refused(_:)`` with one
    /// difference: nothing is signed there, and Apple attests a key only once. Where a request
    /// would be signed again, only a new key helps.
    static func notEnrolled(_ refusal: Refusal) -> LocalRow {
        let row = refused(refusal)
        guard row.nextStep == .signAgain else { return row }
        return LocalRow(row.status, row.blame, .enrol, row.title, row.companion)
    }
}

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

extension LocalRow {
    /// The rows of refusals: verdicts about a request, and about an attestation.
    static func refused(_ refusal: Refusal) -> LocalRow {
        switch refusal {
        case .assertionMissing: signAgain("The request carries no assertion.")
        case .challengeMissing: signAgain("The request carries no challenge.")
        case .challengeUnknown: signAgain("The challenge was not issued here.")
        case .challengeExpired: signAgain("The challenge is too old.")
        case .challengeSpent: signAgain("The challenge was used before.")
        case .counterReplayed: signAgain("The assertion's counter was used before.")
        case .sessionUnknown: signAgain("There is no such session.")
        case .sessionExpired: signAgain("The session has expired.")
        case .sessionReplayed: signAgain("The sequence number was used before.")
        case .sessionMismatch: signAgain("The session's signature does not cover this request.")
        case .sessionRefused: signAgain("A session is not enough here: sign with an assertion.")
        case .keyUnknown:
            LocalRow(401, .client, .enrol, "The key is not enrolled here.", .authenticate)
        case .keyExpired: LocalRow(401, .client, .enrol, "The key is too old.", .authenticate)
        case .assertionMalformed: fixClient("The fields of the proof can't be read.")
        case .signedFieldRepeated: fixClient("A signed field came in more than one line.")
        case .digestMissing: fixClient("Content-Digest with sha-256 is asked for and absent.")
        case .digestMismatch: fixClient("The content is not what Content-Digest declares.")
        case .attestationMalformed: fixClient("The attestation can't be read.")
        case .requestMalformed: fixClient("The request's content can't be read.")
        case .clientDataAmbiguous: fixClient("What is signed could be read in another way.")
        case .pathAmbiguous, .connectionNomination, .methodCase: disputed(refusal)
        case .signatureMismatch: mismatch("The signature does not cover this request.")
        case .appMismatch: forbidden("The key belongs to another app.")
        case .environmentMismatch: forbidden("The key belongs to another environment.")
        case .categoryRefused: forbidden("This kind of distribution is not admitted.")
        case .versionRefused: forbidden("This version of the app is not admitted.")
        case .keyRevoked: forbidden("The key was revoked.")
        case .certificateUntrusted, .certificateExpired, .certificateRevoked, .nonceMismatch,
            .keyIDMismatch, .keyUnsuitable, .accessControlMismatch, .counterNotZero,
            .receiptRefused, .hardwareRefused, .bootRefused, .appUnknown, .signerMismatch,
            .provisioningRefused, .patchLevelRefused:
            unattested(refusal)
        case .attesterThrottled:
            later(429, .client, "Too many keys with the certificates of one device.")
        case .statusListUnavailable:
            later(503, .gateway, "Revoked certificates can't be looked up now.")
        case .riskExceeded: forbidden("The device's risk metric is too high.")
        case .riskUnknown: forbidden("The device's risk metric is not known.")
        case .deviceFlagged: forbidden("The device was flagged.")
        case .deviceThrottled: later(429, .client, "Too many device tokens of this client at once.")
        case .deviceCheckUnavailable: later(503, .gateway, "The device can't be checked now.")
        case .proofMissing, .proofMalformed, .proofInvalid, .proofExpired, .proofSpent,
            .proofRefused, .proofThrottled, .proofUnavailable, .deviceTokenMissing,
            .deviceTokenMalformed, .deviceTokenUsed:
            token(refusal)
        case .unsupported: forbidden("Clients that can't attest are not admitted.")
        // Never sent: a preflight with this finding is forwarded.
        case .preflight: forbidden("A CORS preflight carries no proof.")
        case .contentTooLarge:
            LocalRow(413, .client, .none, "The content is larger than the route allows.")
        case .contentUnseen:
            LocalRow(413, .gateway, .none, "Not all of the content came to be verified.")
        case .noRule: LocalRow(404, .client, .fixClient, "Nothing is served under this address.")
        case .enrolmentThrottled: later(429, .gateway, "Too many keys at once.")
        case .enrolmentNotYet: later(429, .gateway, "It is not yet this key's turn.")
        case .addressThrottled: later(429, .client, "Too much comes from this address.")
        // Not 413: the content is within the route's limit, and fits when other requests have
        // ended.
        case .addressHeld: later(429, .client, "Too much content of this address is under way.")
        case .keyThrottled: later(429, .client, "Too many requests of this key.")
        case .keyHeld: later(429, .client, "Too much content of this key is under way.")
        case .challengesExhausted: later(503, .gateway, "Too many challenges were spent at once.")
        case .storeUnavailable: later(503, .gateway, "The key store can't be used now.")
        case .heldFull: later(503, .gateway, "There is no room for the content now.")
        case .spillFailed: later(503, .gateway, "The content can't be stored now.")
        }
    }

    /// The rows of requests that rules dispute, which are not judged.
    private static func disputed(_ refusal: Refusal) -> LocalRow {
        switch refusal {
        case .pathAmbiguous: fixClient("Servers differ on what the path is.")
        case .connectionNomination: fixClient("Connection names a field that is not of one hop.")
        case .methodCase: fixClient("The method is not written in upper case.")
        default: preconditionFailure("LocalRow: \(refusal.rawValue) is about no route")
        }
    }

    /// The rows of attestations that do not hold.
    private static func unattested(_ refusal: Refusal) -> LocalRow {
        switch refusal {
        case .certificateUntrusted: forbidden("The attestation does not lead to a trusted root.")
        case .certificateExpired:
            unusable("The attestation's certificate is not valid now; attest again.")
        case .nonceMismatch: unusable("The attestation is for another challenge or context.")
        case .keyIDMismatch:
            LocalRow(403, .client, .fixClient, "The key id is not that of the attested key.")
        case .accessControlMismatch:
            forbidden("The system that holds the key is not in full security.")
        case .counterNotZero: unusable("The attested key was used before.")
        case .receiptRefused: forbidden("The attestation's receipt is not genuine.")
        case .certificateRevoked: forbidden("A certificate of the attestation was revoked.")
        case .keyUnsuitable:
            LocalRow(403, .client, .fixClient, "The key was not made as it has to be.")
        case .hardwareRefused: forbidden("The key is not in hardware that is admitted.")
        case .bootRefused: forbidden("The phone's system or bootloader is not admitted.")
        case .appUnknown: unusable("The phone did not know the app; try again with a new key.")
        case .signerMismatch: forbidden("The app is signed by another key.")
        case .provisioningRefused: forbidden("This kind of certificate chain is not admitted.")
        case .patchLevelRefused: forbidden("The phone's system is too old.")
        default: preconditionFailure("LocalRow: \(refusal.rawValue) is about no attestation")
        }
    }

    private static func token(_ refusal: Refusal) -> LocalRow {
        func another(_ title: String) -> LocalRow {
            LocalRow(401, .client, .getToken, title, .authenticate)
        }
        switch refusal {
        case .deviceTokenMissing: return fixClient("The request carries no device token.")
        case .deviceTokenMalformed: return fixClient("What should be a device token is none.")
        case .deviceTokenUsed: return fixClient("The device token was used before.")
        case .proofMissing: return another("The request carries no token that is asked for here.")
        case .proofMalformed: return fixClient("The token can't be read, or there are two.")
        case .proofInvalid: return another("The token is not one of its issuer.")
        case .proofExpired: return another("The token is too old, or not valid yet.")
        case .proofSpent: return another("The token was used before.")
        case .proofRefused: return forbidden("The token is not for this use, or not good enough.")
        case .proofThrottled: return later(429, .client, "Too many tokens of this client.")
        case .proofUnavailable: return later(503, .gateway, "The token can't be checked now.")
        default: preconditionFailure("LocalRow: \(refusal.rawValue) is about no token")
        }
    }

    private static func signAgain(_ title: String) -> LocalRow {
        LocalRow(401, .client, .signAgain, title, .authenticate)
    }

    private static func fixClient(_ title: String) -> LocalRow {
        LocalRow(400, .client, .fixClient, title)
    }

    private static func forbidden(_ title: String) -> LocalRow {
        LocalRow(403, .client, .none, title)
    }

    /// RFC 9110 §11.6.1 ¶2: another signature may be taken. The field says of which bytes.
    private static func mismatch(_ title: String) -> LocalRow {
        LocalRow(403, .client, .none, title, .authenticate)
    }

    /// An attestation that will never be good: Apple attests a key only once, so a new key helps.
    private static func unusable(_ title: String) -> LocalRow {
        LocalRow(403, .client, .enrol, title)
    }
}
