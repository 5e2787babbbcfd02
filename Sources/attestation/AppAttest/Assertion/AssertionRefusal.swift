/// Why an assertion was refused.
public typealias AssertionRefusal = ObjectRefusal<AssertionRefusalReason>

/// The step of an assertion's verification that failed.
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

    /// What an operator is told about the reason.
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
