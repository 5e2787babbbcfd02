import AppAttest
import KeyStore
package import Rules

/// Why a request was refused. The raw value is the wire's `reason`, the metric label and the log
/// field; renaming one breaks dashboards and apps, so add rather than rename.
package enum Refusal: String, CaseIterable, Sendable {
    case assertionMissing = "assertion-missing"
    case challengeMissing = "challenge-missing"
    case challengeUnknown = "challenge-unknown"
    case challengeExpired = "challenge-expired"
    case challengeSpent = "challenge-spent"
    case counterReplayed = "counter-replayed"
    case keyUnknown = "key-unknown"
    case keyExpired = "key-expired"
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
    // Of Android phones.
    case certificateRevoked = "certificate-revoked"
    case keyUnsuitable = "key-unsuitable"
    case hardwareRefused = "hardware-refused"
    case bootRefused = "boot-refused"
    case appUnknown = "app-unknown"
    case signerMismatch = "signer-mismatch"
    case provisioningRefused = "provisioning-refused"
    case patchLevelRefused = "patch-level-refused"
    case attesterThrottled = "attester-throttled"
    case statusListUnavailable = "status-list-unavailable"
    case riskExceeded = "risk-exceeded"
    case riskUnknown = "risk-unknown"
    case deviceFlagged = "device-flagged"
    case deviceTokenMissing = "device-token-missing"
    case deviceTokenMalformed = "device-token-malformed"
    case deviceTokenUsed = "device-token-used"
    case deviceThrottled = "device-throttled"
    case deviceCheckUnavailable = "device-check-unavailable"
    // Of the tokens of `proofs`.
    case proofMissing = "proof-missing"
    case proofMalformed = "proof-malformed"
    case proofInvalid = "proof-invalid"
    case proofExpired = "proof-expired"
    case proofSpent = "proof-spent"
    case proofRefused = "proof-refused"
    case proofThrottled = "proof-throttled"
    case proofUnavailable = "proof-unavailable"
    case unsupported
    /// A CORS preflight that the rule forwards unjudged. The gateway never answers with it.
    case preflight
    case contentTooLarge = "content-too-large"
    /// The proxy that asks about the request has not sent all of its content.
    case contentUnseen = "content-unseen"
    case enrolmentThrottled = "enrolment-throttled"
    case enrolmentNotYet = "enrolment-not-yet"
    case addressThrottled = "address-throttled"
    /// The device is over the rule's rate.
    case keyThrottled = "key-throttled"
    case storeUnavailable = "store-unavailable"
    case clientDataAmbiguous = "client-data-ambiguous"
    case pathAmbiguous = "path-ambiguous"
    case connectionNomination = "connection-nomination"
    case methodCase = "method-case"
    case noRule = "no-rule"
    case challengesExhausted = "challenges-exhausted"
    case addressHeld = "address-held"
    case keyHeld = "key-held"
    case heldFull = "held-full"
    case spillFailed = "spill-failed"
    case sessionUnknown = "session-unknown"
    case sessionExpired = "session-expired"
    case sessionReplayed = "session-replayed"
    case sessionMismatch = "session-mismatch"
    case sessionRefused = "session-refused"
}

extension Refusal {
    /// All that is said of the reason. Answers, guards, texts and tests are made from it.
    package var row: RefusalRow {
        switch self {
        case .assertionMissing:
            .signAgain(.proof, "The request carries no assertion.")
                .meaning("The request carries no key id or no assertion.")
        case .challengeMissing:
            .signAgain(.proof, "The request carries no challenge.")
                .meaning(
                    """
                    The request carries no challenge, and the rule requires one; or the key's \
                    counters come from an [older copy of the \
                    store](../../deploy/docs/store.md#the-store), and the rule takes a challenge.
                    """
                )
        case .challengeUnknown:
            .signAgain(.proof, "The challenge was not issued here.")
                .meaning(
                    """
                    The challenge was not issued here, was issued for another purpose, or, for \
                    requests, before a restart.
                    """
                )
        case .challengeExpired:
            .signAgain(.proof, "The challenge is too old.")
                .meaning("The challenge is older than its lifetime.")
        case .challengeSpent: .signAgain(.proof, "The challenge was used before.")
        case .counterReplayed:
            .signAgain(.proof, "The assertion's counter was used before.")
                .meaning("The assertion was used before, or a later one overtook it.")
        case .keyUnknown: .enrol("The key is not enrolled here.")
        case .keyExpired:
            .enrol("The key is too old.")
                .meaning("The Android key is older than `max_key_age`.")
        case .assertionMalformed:
            .fixClient(.proof, .broken, "The fields of the proof can't be read.")
                .meaning(
                    """
                    A field of the proof can't be read, is there twice or lacks the others, an \
                    assertion stands beside a session, or it has the form of another platform than \
                    the key's.
                    """
                )
        case .signedFieldRepeated:
            .fixClient(.proof, .broken, "A signed field came in more than one line.")
                .meaning("A field of the rule's `headers` came in more than one line.")
        case .digestMissing:
            .fixClient(.content, .broken, "Content-Digest with sha-256 is asked for and absent.")
                .meaning("`Content-Digest` with sha-256 is required, and absent or unreadable.")
        case .digestMismatch:
            .fixClient(.content, .broken, "The content is not what Content-Digest declares.")
        case .attestationMalformed:
            .fixClient(.enrolment, .none, "The attestation can't be read.")
                .meaning(
                    """
                    The attestation can't be read; of a phone: the chain, or no challenge was \
                    given when the key was made.
                    """
                )
        case .requestMalformed:
            .fixClient(.enrolment, .none, "The request's content can't be read.")
                .meaning("The JSON sent to an endpoint can't be read.")
        // RFC 9110 §11.6.1 ¶2: another signature may be taken. The field says of which bytes.
        case .signatureMismatch:
            RefusalRow(
                .proof,
                .broken,
                LocalRow(
                    403,
                    .client,
                    .none,
                    "The signature does not cover this request.",
                    .authenticate
                )
            )
        case .appMismatch:
            .forbidden(.key, .broken, "The key belongs to another app.")
                .meaning("The key is of another app, or of one that the rule does not admit.")
        case .environmentMismatch:
            .forbidden(.key, .broken, "The key belongs to another environment.")
                .meaning("It is of development where production is required, or the reverse.")
        case .categoryRefused:
            .forbidden(.key, .broken, "This kind of distribution is not admitted.")
        case .versionRefused: .forbidden(.key, .broken, "This version of the app is not admitted.")
        case .keyRevoked:
            .forbidden(.key, .none, "The key was revoked.")
                .meaning("An operator, or Google's list, has revoked the key.")
        case .certificateUntrusted:
            .unattested(.none, "The attestation does not lead to a trusted root.")
        // Apple attests a key only once, so only a new key helps.
        case .certificateExpired:
            .unattested(.enrol, "The attestation's certificate is not valid now; attest again.")
                .meaning("The attestation's certificate is not valid now: it was sent days late.")
        case .nonceMismatch:
            .unattested(.enrol, "The attestation is for another challenge or context.")
                .meaning("It is for another challenge or context, or hashed in another way.")
        case .keyIDMismatch: .unattested(.fixClient, "The key id is not that of the attested key.")
        case .accessControlMismatch:
            .unattested(.none, "The system that holds the key is not in full security.")
                .meaning("The system of the Mac is not in full security.")
        case .counterNotZero:
            .unattested(.enrol, "The attested key was used before.")
                .meaning("The attested key was used before it was enrolled.")
        case .receiptRefused:
            .unattested(.none, "The attestation's receipt is not genuine.")
                .meaning("A receipt is required, and this one does not verify.")
        case .certificateRevoked:
            .unattested(.none, "A certificate of the attestation was revoked.")
                .meaning("A certificate of the phone is in Google's list: its keys have leaked.")
        case .keyUnsuitable:
            .unattested(.fixClient, "The key was not made as it has to be.")
                .meaning("The key is imported, is not on P-256, or may not sign with SHA-256.")
        case .hardwareRefused:
            .unattested(.none, "The key is not in hardware that is admitted.")
                .meaning("The key is in software, or in other hardware than `level` asks for.")
        case .bootRefused:
            .unattested(.none, "The phone's system or bootloader is not admitted.")
                .meaning("The system is not the maker's, or the bootloader is unlocked.")
        case .appUnknown:
            .unattested(.enrol, "The phone did not know the app; try again with a new key.")
                .meaning("The system lost the app's name with the key, as Android before 17 may.")
        case .signerMismatch:
            .unattested(.none, "The app is signed by another key.")
                .meaning(
                    """
                    The app is signed by none of `signers`: it was changed, or is signed by the \
                    Play Store.
                    """
                )
        case .provisioningRefused:
            .unattested(.none, "This kind of certificate chain is not admitted.")
                .meaning("The phone's chain is from the factory, and `provisioning` is `rkp`.")
        case .patchLevelRefused:
            .unattested(.none, "The phone's system is too old.")
                .meaning("The system is older than `patch.max_age`, or does not say how old.")
        case .attesterThrottled:
            .later(.enrolment, 429, .client, "Too many keys with the certificates of one device.")
                .meaning("One certificate has attested more keys than `enrolment.per_attester`.")
        case .statusListUnavailable:
            .later(.enrolment, 503, .gateway, "Revoked certificates can't be looked up now.")
                .meaning("Google's list of revocations is missing or older than `status_max_age`.")
        case .riskExceeded:
            .forbidden(.device, .none, "The device's risk metric is too high.")
                .meaning("Apple's risk metric of the device is above the rule's `risk.max`.")
        case .riskUnknown:
            .forbidden(.device, .none, "The device's risk metric is not known.")
                .meaning("No risk metric, or an old one, is known, and `risk.unknown` is `refuse`.")
        case .deviceFlagged:
            .forbidden(.device, .none, "The device was flagged.")
                .meaning("The device's bits at Apple are among those that the rule refuses.")
        case .deviceTokenMissing:
            .fixClient(.device, .broken, "The request carries no device token.")
                .meaning("The rule asks for device bits; `App-Attest-Device-Token` is not there.")
        case .deviceTokenMalformed:
            .fixClient(.device, .broken, "What should be a device token is none.")
                .meaning("It is no base64, too long or there twice, or Apple does not take it.")
        case .deviceTokenUsed:
            .fixClient(.device, .retried, "The device token was used before.")
                .meaning("The device token came with an earlier request, or a call about a device.")
        case .deviceThrottled:
            .later(.device, 429, .client, "Too many device tokens of this client at once.")
                .meaning("Apple is being asked about 4 tokens of the key, or 16 of the address.")
        case .deviceCheckUnavailable:
            .later(.device, 503, .gateway, "The device can't be checked now.")
                .meaning(
                    """
                    The device's bits are not known: Apple failed or was too slow, or was not \
                    asked, since too many calls wait or its host is being left alone.
                    """
                )
        case .proofMissing:
            .getToken(.proof, .broken, "The request carries no token that is asked for here.")
        case .proofMalformed:
            .fixClient(.token, .broken, "The token can't be read, or there are two.")
        case .proofInvalid: .getToken(.token, .broken, "The token is not one of its issuer.")
        case .proofExpired: .getToken(.token, .retried, "The token is too old, or not valid yet.")
        case .proofSpent: .getToken(.token, .retried, "The token was used before.")
        case .proofRefused:
            .forbidden(.token, .none, "The token is not for this use, or not good enough.")
        case .proofThrottled: .later(.token, 429, .client, "Too many tokens of this client.")
        case .proofUnavailable: .later(.token, 503, .gateway, "The token can't be checked now.")
        case .unsupported:
            .forbidden(.proof, .none, "Clients that can't attest are not admitted.")
                .meaning("The app says that it can't attest.")
        case .preflight:
            .forbidden(.preflight, .none, "A CORS preflight carries no proof.")
                .meaning("The rule forwards it unjudged; log, metrics and the origin see it.")
        case .contentTooLarge:
            RefusalRow(
                .length,
                .broken,
                LocalRow(413, .client, .none, "The content is larger than the route allows.")
            )
            .meaning("The content is larger than the rule's `body.limit`.")
        case .contentUnseen:
            RefusalRow(
                .content,
                .none,
                LocalRow(413, .gateway, .none, "Not all of the content came to be verified.")
            )
            .meaning("The rule signs the content, and the asking proxy has not sent all of it.")
        case .enrolmentThrottled:
            .later(.enrolment, 429, .gateway, "Too many keys at once.")
                .meaning("Too many ask for challenges to enrol, or try an attestation again.")
        case .enrolmentNotYet:
            .later(.enrolment, 429, .gateway, "It is not yet this key's turn.")
                .meaning("The key is outside the share that may enrol.")
        case .addressThrottled: .later(.address, 429, .client, "Too much comes from this address.")
        case .keyThrottled:
            .later(.rate, 429, .client, "Too many requests of this key.")
                .meaning("The device makes more requests than the rule's `rate`.")
        case .storeUnavailable: .later(.store, 503, .gateway, "The key store can't be used now.")
        case .clientDataAmbiguous:
            .fixClient(.proof, .broken, "What is signed could be read in another way.")
                .meaning(
                    """
                    What is signed could be read as another form: content that looks like the \
                    signed lines or a challenge, the method `-`; or [by \
                    Envoy](../../deploy/docs/external-authorization.md#envoy-over-grpc), which \
                    rewrites bytes: a signed target with `!`, a signed field with `!` or a comma.
                    """
                )
        case .pathAmbiguous:
            .fixClient(.dispute, .none, "Servers differ on what the path is.")
                .meaning("The path has several interpretations, whose rules decide differently.")
        case .connectionNomination:
            .fixClient(.dispute, .none, "Connection names a field that is not of one hop.")
                .meaning("`Connection` names a field that the rule signs or reads.")
        case .methodCase:
            .fixClient(.dispute, .none, "The method is not written in upper case.")
                .meaning("The method is that of a rule in another case.")
        case .noRule:
            RefusalRow(
                .rule,
                .none,
                LocalRow(404, .client, .fixClient, "Nothing is served under this address.")
            )
            .meaning("No rule serves this host, method and path, or its rule denies.")
        case .challengesExhausted:
            .later(.store, 503, .gateway, "Too many challenges were spent at once.")
                .meaning("More challenges were spent within a lifetime than `challenges.capacity`.")
        // Not 413: it is within the limit of the route, and fits when other requests have ended.
        case .addressHeld:
            .later(.room, 429, .client, "Too much content of this address is under way.")
                .meaning("Too much content of the client's address is held.")
        case .keyHeld:
            .later(.room, 429, .client, "Too much content of this key is under way.")
                .meaning("Too much content of the client's key is held, from all its addresses.")
        case .heldFull: .later(.room, 503, .gateway, "There is no room for the content now.")
        case .spillFailed:
            .later(.room, 503, .gateway, "The content can't be stored now.")
                .meaning("The file system of `spill_folder` failed.")
        case .sessionUnknown:
            .signAgain(.session, "There is no such session.")
                .meaning("It was evicted, is of before a restart, of another gateway, or invented.")
        case .sessionExpired:
            .signAgain(.session, "The session has expired.")
                .meaning("The session is older than `sessions.lifetime`.")
        case .sessionReplayed:
            .signAgain(.session, "The sequence number was used before.")
                .meaning("The sequence number was used before, or is too far below the highest.")
        case .sessionMismatch:
            .signAgain(.session, "The session's signature does not cover this request.")
                .meaning(
                    """
                    The signature does not cover this request, or was made with another secret; or \
                    `App-Attest-Key-Id` names another key than the session's.
                    """
                )
        case .sessionRefused:
            .signAgain(.session, "A session is not enough here: sign with an assertion.")
                .meaning("The rule accepts assertions alone.")
        }
    }
}

extension Refusal {
    init(_ reason: AssertionRefusal.Reason) {
        switch reason {
        case .malformed: self = .assertionMalformed
        case .signatureMismatch: self = .signatureMismatch
        case .appMismatch: self = .appMismatch
        case .counterReplayed: self = .counterReplayed
        case .categoryRefused: self = .categoryRefused
        case .versionRefused: self = .versionRefused
        }
    }

    /// The refusal of a request that a rule refuses before it is judged.
    package init(_ reason: DisputedRoute.Reason) {
        switch reason {
        case .pathAmbiguous: self = .pathAmbiguous
        case .connectionNomination: self = .connectionNomination
        case .methodCase: self = .methodCase
        }
    }

    /// Whether a rule refuses for this reason before it judges the request.
    var isDispute: Bool { row.subject == .dispute }

    /// The refusal for a refused use of counter and challenge.
    init(_ refusal: ConsumeRefusal) {
        switch refusal {
        case .unknown: self = .keyUnknown
        case .revoked: self = .keyRevoked
        case .replayed: self = .counterReplayed
        case .challengeSpent: self = .challengeSpent
        case .challengesExhausted: self = .challengesExhausted
        // The same request is good if it is signed again with a challenge.
        case .unanchored: self = .challengeMissing
        }
    }
}
