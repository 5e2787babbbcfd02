public import Foundation

/// Why a request was not sent, or its answer not read.
///
/// May grow: a `switch` over it has an `@unknown default`.
#if hasAttribute(nonexhaustive)
    @nonexhaustive(warn)
#endif
public enum PortcullisError: Error, Hashable, Sendable {
    /// The request has no URL, or one that is not of HTTP.
    case urlUnfit
    /// The file or stream with the content can't be read, or the file for it not written.
    case contentUnreadable
    /// The file with the content was changed after it was signed. Sign it, or upload it, again.
    case contentChanged
    /// The content is a stream longer than ``PortcullisLimits/spooledBytes``. Put it into a file
    /// and upload that.
    case contentTooLarge
    /// The answer is none of HTTP.
    case answerUnfit
    /// The answer is longer than ``PortcullisLimits/answerBytes``, or for a download than
    /// ``PortcullisLimits/downloadBytes``.
    case answerTooLarge
    /// The context of an enrolment has no byte, or more than 256.
    case contextUnfit
    /// A new key is needed, and none may be attested today: ``PortcullisLimits/keysPerDay``.
    case keysExhausted
    /// The call asked for ``SendingCondition/proof``, and none could be made, for this reason.
    /// Nothing of the request was sent without one.
    case proofUnavailable(SentProof.Absence)
}

extension PortcullisError: LocalizedError {
    /// A sentence for a log or a developer. It holds nothing of the request.
    public var errorDescription: String? {
        switch self {
        case .urlUnfit: "The request has no URL, or one that is not of HTTP."
        case .contentUnreadable:
            "The content of the request can't be read, or the file for an answer not be written."
        case .contentChanged: "The file with the content was changed after it was signed."
        case .contentTooLarge:
            "The content is a stream that is longer than `spooledBytes`. Upload it from a file."
        case .answerUnfit: "The answer is none of HTTP."
        case .answerTooLarge:
            "The answer is longer than `answerBytes`, or for a download than `downloadBytes`."
        case .contextUnfit: "The context of an enrolment has no byte, or more than 256."
        case .proofUnavailable(let absence):
            "The request was not sent, since it can't be proven now: \(absence.words)."
        case .keysExhausted: "No other key may be attested on this device today."
        }
    }
}
