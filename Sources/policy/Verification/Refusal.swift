/// Why a request was turned away. The raw value is the wire's `reason`, the metric label and the
/// log field; renaming one breaks dashboards and apps, so add rather than rename.
package enum Refusal: String, CaseIterable, Sendable {
    case assertionMissing = "assertion-missing"
    case challengeMissing = "challenge-missing"
    case challengeUnknown = "challenge-unknown"
    case challengeExpired = "challenge-expired"
    case challengeSpent = "challenge-spent"
    case counterReplayed = "counter-replayed"
    case keyUnknown = "key-unknown"
    case assertionMalformed = "assertion-malformed"
    case signedFieldRepeated = "signed-field-repeated"
    case digestMissing = "digest-missing"
    case digestMismatch = "digest-mismatch"
    case attestationMalformed = "attestation-malformed"
    case requestMalformed = "request-malformed"
    case signatureMismatch = "signature-mismatch"
    case appMismatch = "app-mismatch"
    case environmentMismatch = "environment-mismatch"
    case categoryRefused = "category-refused"
    case versionRefused = "version-refused"
    case keyRevoked = "key-revoked"
    case certificateUntrusted = "certificate-untrusted"
    case certificateExpired = "certificate-expired"
    case nonceMismatch = "nonce-mismatch"
    case keyIDMismatch = "key-id-mismatch"
    case accessControlMismatch = "access-control-mismatch"
    case counterNotZero = "counter-not-zero"
    case receiptRefused = "receipt-refused"
    case riskExceeded = "risk-exceeded"
    case deviceFlagged = "device-flagged"
    case unsupported
    case contentTooLarge = "content-too-large"
    case enrolmentThrottled = "enrolment-throttled"
    case addressThrottled = "address-throttled"
    case storeUnavailable = "store-unavailable"
    case clientDataAmbiguous = "client-data-ambiguous"
    case noRule = "no-rule"
    case challengesExhausted = "challenges-exhausted"
    case addressHeld = "address-held"
    case heldFull = "held-full"
    case spillFailed = "spill-failed"
}

extension Refusal {
    /// Whose fault a refusal is.
    package enum Blame: String, Sendable { case client, gateway }

    /// What the client is to do next.
    package enum NextStep: String, Sendable {
        /// Sign again with the challenge in this answer.
        case signAgain = "sign-again"
        /// Make a new key and enrol it.
        case enrol
        /// Nothing at run time: the client's code is wrong.
        case fixClient = "fix-client"
        /// Nothing: this build or device may not.
        case none
        /// Try again after the time in Retry-After.
        case retryLater = "retry-later"
    }

    /// One line of the table.
    package struct Row: Sendable {
        package let status: Int
        package let blame: Blame
        package let nextStep: NextStep
        /// One sentence for people; it says nothing about policy.
        package let summary: String

        fileprivate init(_ status: Int, _ blame: Blame, _ step: NextStep, _ summary: String) {
            self.status = status
            self.blame = blame
            nextStep = step
            self.summary = summary
        }
    }

    /// Everything that follows from a reason. No call site chooses a status.
    package var row: Row {
        switch self {
        case .assertionMissing: Row(401, .client, .signAgain, "The request carries no assertion.")
        case .challengeMissing: Row(401, .client, .signAgain, "The request carries no challenge.")
        case .challengeUnknown: Row(401, .client, .signAgain, "The challenge was not issued here.")
        case .challengeExpired: Row(401, .client, .signAgain, "The challenge is too old.")
        case .challengeSpent: Row(401, .client, .signAgain, "The challenge was used before.")
        case .counterReplayed:
            Row(401, .client, .signAgain, "The assertion's counter was used before.")
        case .keyUnknown: Row(401, .client, .enrol, "The key is not enrolled here.")
        case .assertionMalformed:
            Row(400, .client, .fixClient, "The key id, challenge or assertion can't be read.")
        case .signedFieldRepeated:
            Row(400, .client, .fixClient, "A signed field came in more than one line.")
        case .digestMissing:
            Row(400, .client, .fixClient, "Content-Digest with sha-256 is asked for and absent.")
        case .digestMismatch:
            Row(400, .client, .fixClient, "The content is not what Content-Digest declares.")
        case .attestationMalformed:
            Row(400, .client, .fixClient, "The attestation can't be read.")
        case .requestMalformed:
            Row(400, .client, .fixClient, "The request's content can't be read.")
        case .signatureMismatch:
            Row(403, .client, .none, "The signature does not cover this request.")
        case .appMismatch: Row(403, .client, .none, "The key belongs to another app.")
        case .environmentMismatch:
            Row(403, .client, .none, "The key belongs to another environment.")
        case .categoryRefused:
            Row(403, .client, .none, "This kind of distribution is not admitted.")
        case .versionRefused: Row(403, .client, .none, "This version of the app is not admitted.")
        case .keyRevoked: Row(403, .client, .none, "The key was revoked.")
        case .certificateUntrusted:
            Row(403, .client, .none, "The attestation does not lead to a trusted root.")
        case .certificateExpired:
            Row(403, .client, .none, "The attestation's certificate is not valid now; attest anew.")
        case .nonceMismatch: Row(403, .client, .none, "The attestation is for another challenge.")
        case .keyIDMismatch: Row(403, .client, .none, "The key id is not that of the attested key.")
        case .accessControlMismatch:
            Row(403, .client, .none, "The system that holds the key is not in full security.")
        case .counterNotZero: Row(403, .client, .none, "The attested key was used before.")
        case .receiptRefused: Row(403, .client, .none, "The attestation's receipt is not genuine.")
        case .riskExceeded: Row(403, .client, .none, "The device's risk metric is too high.")
        case .deviceFlagged: Row(403, .client, .none, "The device was flagged.")
        case .unsupported: Row(403, .client, .none, "Clients that can't attest are not admitted.")
        case .contentTooLarge:
            Row(413, .client, .none, "The content is larger than the route allows.")
        case .enrolmentThrottled: Row(429, .gateway, .retryLater, "Too many keys at once.")
        case .addressThrottled:
            Row(429, .client, .retryLater, "Too much comes from this address.")
        case .clientDataAmbiguous:
            Row(400, .client, .fixClient, "What is signed could be read in another way.")
        case .challengesExhausted:
            Row(503, .gateway, .retryLater, "Too many challenges were spent at once.")
        case .storeUnavailable: Row(503, .gateway, .retryLater, "The key store can't be used now.")
        case .noRule: Row(404, .client, .fixClient, "Nothing is served under this address.")
        // Not 413: the content is within the route's limit, and fits when others have ended.
        case .addressHeld:
            Row(429, .client, .retryLater, "Too much content of this address is under way.")
        case .heldFull: Row(503, .gateway, .retryLater, "There is no room for the content now.")
        case .spillFailed: Row(503, .gateway, .retryLater, "The content can't be stored now.")
        }
    }
}
