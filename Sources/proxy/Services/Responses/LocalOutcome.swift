package import HTTPWire
package import Verification

/// Why the gateway answers a request itself. ``row`` says how.
package enum LocalOutcome: Hashable, Sendable {
    /// A verdict about the request.
    case refused(Refusal)
    /// A verdict about a call of the enrolment endpoints.
    case notEnrolled(Refusal)
    /// It is no well-formed HTTP request.
    case malformed(Malformed.Reason)
    /// The origin gave no response that could be relayed.
    case failed(OriginFailure)
    /// It can't be served here or now, for a reason of HTTP or of a service.
    case fault(LocalFault)
    /// A service has done what it was asked.
    case done(LocalSuccess)
}

extension LocalOutcome {
    /// Everything that follows from the outcome: the one table of local responses.
    package var row: LocalRow {
        switch self {
        case .refused(let refusal): .refused(refusal)
        case .notEnrolled(let refusal): .notEnrolled(refusal)
        case .malformed(let reason): .malformed(reason)
        case .failed(let failure): .failed(failure)
        case .fault(let fault): .fault(fault)
        case .done(let success): .done(success)
        }
    }

    /// The wire's `reason`, the metric label and the log's `problem`; empty where nothing went
    /// wrong.
    package var reason: String {
        switch self {
        case .refused(let refusal), .notEnrolled(let refusal): refusal.rawValue
        case .malformed(let reason): reason.rawValue
        case .failed(let failure): failure.rawValue
        case .fault(let fault): fault.rawValue
        case .done: ""
        }
    }
}
