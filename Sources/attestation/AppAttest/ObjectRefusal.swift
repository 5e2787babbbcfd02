/// Why an attestation, an assertion or a receipt was refused: the first check that failed.
///
/// One type with three kinds of reasons: ``AttestationRefusal``, ``AssertionRefusal`` and
/// ``ReceiptRefusal``. Two refusals are equal when their reasons are.
public struct ObjectRefusal<Check: RefusalReason>: Error, Hashable, Sendable {
    /// The reasons for which this kind of object is refused.
    public typealias Reason = Check

    /// The check that failed, for code.
    public let reason: Reason
    /// What was found, for people. Not compared, and without key material.
    public let detail: String

    package init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    /// Whether two refusals have the same reason.
    public static func == (left: Self, right: Self) -> Bool { left.reason == right.reason }

    /// Feeds the reason.
    public func hash(into hasher: inout Hasher) { hasher.combine(reason) }
}

extension ObjectRefusal: CustomStringConvertible {
    /// The reason's name in logs, and what was found.
    public var description: String { "\(reason.rawValue): \(detail)" }
}

/// The reasons for which one kind of object is refused. The raw value is the reason's name in logs,
/// metrics and answers, in kebab-case. It does not change.
public protocol RefusalReason: RawRepresentable<String>, CaseIterable, Hashable, Sendable {
    /// The operator's text about the reason.
    var advice: RefusalAdvice { get }
}

extension RefusalReason {
    /// What is wrong, in one English sentence, for the operator of a server.
    public var summary: String { advice.summary }
    /// What to look at first, in one English sentence.
    public var nextStep: String { advice.nextStep }
}

/// The text about a reason of refusal for the operator of a server, in English.
public struct RefusalAdvice: Hashable, Sendable {
    /// What is wrong, in one sentence.
    public let summary: String
    /// What to look at first, in one sentence.
    public let nextStep: String

    init(_ summary: String, _ nextStep: String) {
        self.summary = summary
        self.nextStep = nextStep
    }

    // Attestations and assertions have the same build policy.

    static let categoryRefused = RefusalAdvice(
        "The build has a validation category that is not accepted.",
        "Check the categories of the build policy."
    )
    static let versionRefused = RefusalAdvice(
        "The build has a bundle version that is not accepted.",
        "Check the bundle versions of the build policy."
    )
}

/// Why an attestation was refused.
public typealias AttestationRefusal = ObjectRefusal<AttestationRefusalReason>

/// The step of an attestation's verification that failed.
///
/// May grow: a `switch` over it has an `@unknown default`.
@nonexhaustive
public enum AttestationRefusalReason: String, RefusalReason {
    /// Not an App Attest attestation object.
    case malformed = "attestation-malformed"
    /// Step 1: the certificates do not lead to a given root.
    case certificateUntrusted = "certificate-untrusted"
    /// Step 1: at the given time a certificate is no longer valid, or not yet.
    case certificateExpired = "certificate-expired"
    /// Step 4: the leaf certificate was made for another challenge or other authenticator data.
    case nonceMismatch = "nonce-mismatch"
    /// Step 4: on macOS, the key does not have the protection that Apple requires.
    case accessControlMismatch = "access-control-mismatch"
    /// Step 5, 9: the key id is not that of the attested key.
    case keyIDMismatch = "key-id-mismatch"
    /// Step 6: attested for another app.
    case appMismatch = "app-mismatch"
    /// Step 7: the counter is not 0.
    case counterNotZero = "counter-not-zero"
    /// Step 8: attested in another environment.
    case environmentMismatch = "environment-mismatch"
    /// Step 10: a validation category that is not accepted, or none.
    case categoryRefused = "category-refused"
    /// Step 11: a bundle version that is not accepted, or none.
    case versionRefused = "version-refused"

    /// The operator's text about the reason.
    public var advice: RefusalAdvice {
        switch self {
        case .malformed:
            RefusalAdvice(
                "The bytes are not an App Attest attestation object.",
                "Check that the client sends the object of attestKey, and its encoding."
            )
        case .certificateUntrusted:
            RefusalAdvice(
                "The certificates of the attestation do not lead to a trusted root.",
                "Check the roots: AppleRoots.appAttestation for genuine devices."
            )
        case .certificateExpired:
            RefusalAdvice(
                "A certificate of the attestation is not valid at this time.",
                "Verify an attestation at once: its certificate lives for one to three days."
            )
        case .nonceMismatch:
            RefusalAdvice(
                "The attestation was made for another challenge.",
                "Check how the app makes the client data hash from the challenge."
            )
        case .accessControlMismatch:
            RefusalAdvice(
                "The key of this Mac is not protected as Apple demands.",
                "Full Security and System Integrity Protection have to be on."
            )
        case .keyIDMismatch:
            RefusalAdvice(
                "The key id is not that of the attested key.",
                "Check that the client sends the key id for which it called attestKey."
            )
        case .appMismatch:
            RefusalAdvice(
                "The attestation is of an app that is not accepted.",
                "Check the App ID: team id, full stop, bundle identifier."
            )
        case .counterNotZero:
            RefusalAdvice(
                "The counter of the attestation is not 0.",
                "Genuine attestations have 0; refuse the device."
            )
        case .environmentMismatch:
            RefusalAdvice(
                "The attestation is of an environment that is not accepted.",
                "Builds from Xcode attest in development, all others in production."
            )
        case .categoryRefused: .categoryRefused
        case .versionRefused: .versionRefused
        }
    }
}

/// Why an assertion was refused.
public typealias AssertionRefusal = ObjectRefusal<AssertionRefusalReason>

/// The step of an assertion's verification that failed.
///
/// May grow: a `switch` over it has an `@unknown default`.
@nonexhaustive
public enum AssertionRefusalReason: String, RefusalReason {
    /// Not an App Attest assertion.
    case malformed = "assertion-malformed"
    /// Step 3: not signed by the key over this client data.
    case signatureMismatch = "signature-mismatch"
    /// Step 4: made in another app.
    case appMismatch = "app-mismatch"
    /// Step 5: the counter is not greater than the stored one.
    case counterReplayed = "counter-replayed"
    /// Step 7: a validation category that is not accepted, or none.
    case categoryRefused = "category-refused"
    /// Step 8: a bundle version that is not accepted, or none.
    case versionRefused = "version-refused"

    /// The operator's text about the reason.
    public var advice: RefusalAdvice {
        switch self {
        case .malformed:
            RefusalAdvice(
                "The bytes are not an App Attest assertion.",
                "Check that the client sends the object of generateAssertion, and its encoding."
            )
        case .signatureMismatch:
            RefusalAdvice(
                "The assertion is not signed by this key over this client data.",
                "Compare the client data; AssertionDiagnosis tries the usual mistakes."
            )
        case .appMismatch:
            RefusalAdvice(
                "The assertion was made in another app than the key was attested in.",
                "Check the App ID that is stored with the key."
            )
        case .counterReplayed:
            RefusalAdvice(
                "The counter is not greater than the stored one: a replay or a cloned key.",
                "Check that the server stores each counter once, in one atomic step."
            )
        case .categoryRefused: .categoryRefused
        case .versionRefused: .versionRefused
        }
    }
}

/// Why a receipt was refused.
public typealias ReceiptRefusal = ObjectRefusal<ReceiptRefusalReason>

/// The check of a receipt that failed.
///
/// May grow: a `switch` over it has an `@unknown default`.
@nonexhaustive
public enum ReceiptRefusalReason: String, RefusalReason {
    /// Not a receipt: the message or its contents are malformed (check 3).
    case malformed = "receipt-malformed"
    /// Check 1: not signed by the certificate it names.
    case signatureMismatch = "receipt-signature-mismatch"
    /// Check 2: the certificates do not lead to a given root.
    case certificateUntrusted = "certificate-untrusted"
    /// Check 2: a certificate was not valid when the receipt was made.
    case certificateExpired = "certificate-expired"
    /// Check 4: for another app.
    case appMismatch = "app-mismatch"
    /// Check 5: made too long ago, or in the future.
    case tooOld = "receipt-too-old"
    /// Check 6: for another key.
    case keyMismatch = "receipt-key-mismatch"
    /// Renewed: of type ATTEST instead of RECEIPT.
    case kindMismatch = "receipt-kind-mismatch"
    /// Renewed: of the other environment, or of none.
    case environmentMismatch = "receipt-environment-mismatch"
    /// Renewed: not newer than the receipt that was sent.
    case notNewer = "receipt-not-newer"
    /// Renewed: field 19 or 21 is missing or implausible.
    case periodImplausible = "receipt-period-implausible"

    /// The operator's text about the reason.
    public var advice: RefusalAdvice {
        switch self {
        case .malformed:
            RefusalAdvice(
                "The bytes are not a receipt of App Attest.",
                "Keep and send receipts as they came, without encoding them anew."
            )
        case .signatureMismatch:
            RefusalAdvice(
                "The receipt is not signed by the certificate that it names.",
                "The receipt was changed on its way or in the store."
            )
        case .certificateUntrusted:
            RefusalAdvice(
                "The certificates of the receipt do not lead to a trusted root.",
                "Check the roots: AppleRoots.rootG3, which is not the one of attestations."
            )
        case .certificateExpired:
            RefusalAdvice(
                "A certificate was not valid when the receipt was made.",
                "Ask Apple's server for a newer receipt."
            )
        case .appMismatch:
            RefusalAdvice(
                "The receipt is for an app that is not accepted.",
                "Check the App ID: team id, full stop, bundle identifier."
            )
        case .tooOld:
            RefusalAdvice(
                "The receipt was made too long ago, or in the future.",
                "Check the server's clock, and verify a receipt when it arrives."
            )
        case .keyMismatch:
            RefusalAdvice(
                "The receipt is for another key.",
                "Check that the receipt is stored with the key it came with."
            )
        case .kindMismatch:
            RefusalAdvice(
                "The receipt is an attestation's, where a renewed one is expected.",
                "Check which receipt is looked at: Apple's server answers with type RECEIPT."
            )
        case .environmentMismatch:
            RefusalAdvice(
                "The receipt is not of the key's environment.",
                "Check the host: development keys have one of their own."
            )
        case .notNewer:
            RefusalAdvice(
                "The receipt is not newer than the one that was sent.",
                "Keep the stored receipt, and ask again later."
            )
        case .periodImplausible:
            RefusalAdvice(
                "The times at which the receipt may be renewed are missing or impossible.",
                "Keep the stored receipt. Report it when it lasts: Apple may have changed receipts."
            )
        }
    }
}
