import Verification

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
        case .assertionMalformed: fixClient("The fields of the proof can't be read.")
        case .signedFieldRepeated: fixClient("A signed field came in more than one line.")
        case .digestMissing: fixClient("Content-Digest with sha-256 is asked for and absent.")
        case .digestMismatch: fixClient("The content is not what Content-Digest declares.")
        case .attestationMalformed: fixClient("The attestation can't be read.")
        case .requestMalformed: fixClient("The request's content can't be read.")
        case .clientDataAmbiguous: fixClient("What is signed could be read in another way.")
        case .signatureMismatch: forbidden("The signature does not cover this request.")
        case .appMismatch: forbidden("The key belongs to another app.")
        case .environmentMismatch: forbidden("The key belongs to another environment.")
        case .categoryRefused: forbidden("This kind of distribution is not admitted.")
        case .versionRefused: forbidden("This version of the app is not admitted.")
        case .keyRevoked: forbidden("The key was revoked.")
        case .certificateUntrusted: forbidden("The attestation does not lead to a trusted root.")
        case .certificateExpired:
            unusable("The attestation's certificate is not valid now; attest anew.")
        case .nonceMismatch: unusable("The attestation is for another challenge or context.")
        case .keyIDMismatch:
            LocalRow(403, .client, .fixClient, "The key id is not that of the attested key.")
        case .accessControlMismatch:
            forbidden("The system that holds the key is not in full security.")
        case .counterNotZero: unusable("The attested key was used before.")
        case .receiptRefused: forbidden("The attestation's receipt is not genuine.")
        case .riskExceeded: forbidden("The device's risk metric is too high.")
        case .riskUnknown: forbidden("The device's risk metric is not known.")
        case .deviceFlagged: forbidden("The device was flagged.")
        case .deviceTokenMissing: fixClient("The request carries no device token.")
        case .deviceTokenMalformed: fixClient("What should be a device token is none.")
        case .deviceTokenUsed: fixClient("The device token was used before.")
        case .deviceThrottled: later(429, .client, "Too many device tokens of this client at once.")
        case .deviceCheckUnavailable: later(503, .gateway, "The device can't be checked now.")
        case .unsupported: forbidden("Clients that can't attest are not admitted.")
        // Never sent: what is found a preflight is forwarded.
        case .preflight: forbidden("A CORS preflight carries no proof.")
        case .contentTooLarge:
            LocalRow(413, .client, .none, "The content is larger than the route allows.")
        case .noRule:
            LocalRow(404, .client, .fixClient, "Nothing is served under this address.")
        case .enrolmentThrottled: later(429, .gateway, "Too many keys at once.")
        case .enrolmentNotYet: later(429, .gateway, "It is not yet this key's turn.")
        case .addressThrottled: later(429, .client, "Too much comes from this address.")
        // Not 413: the content is within the route's limit, and fits when others have ended.
        case .addressHeld:
            later(429, .client, "Too much content of this address is under way.")
        case .keyHeld: later(429, .client, "Too much content of this key is under way.")
        case .challengesExhausted:
            later(503, .gateway, "Too many challenges were spent at once.")
        case .storeUnavailable: later(503, .gateway, "The key store can't be used now.")
        case .heldFull: later(503, .gateway, "There is no room for the content now.")
        case .spillFailed: later(503, .gateway, "The content can't be stored now.")
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

    /// An attestation that never will be good: Apple attests a key only once, so a new key helps.
    private static func unusable(_ title: String) -> LocalRow {
        LocalRow(403, .client, .enrol, title)
    }

    static func later(_ status: Int, _ blame: Blame, _ title: String) -> LocalRow {
        LocalRow(status, blame, .retryLater, title, .retryAfter)
    }
}
