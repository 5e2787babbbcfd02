/// One row of the table of local responses.
package struct LocalRow: Sendable {
    /// Who is at fault.
    package enum Blame: String, Sendable {
        case client
        case origin
        case gateway
        /// The request was served.
        case nobody
    }

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
        /// HTTP's own rules say it, and the answer says no more.
        case unsaid

        /// What the client does next, in words for an operator.
        package var advice: String {
            switch self {
            case .signAgain: "signs the request again, with the challenge of the answer"
            case .enrol: "makes a new key, and enrols it"
            case .fixClient: "can do nothing at run time: its code has to be changed"
            case .none: "can do nothing: this device, build or content is not admitted"
            case .retryLater: "tries again after the time in Retry-After"
            case .unsaid: "does what HTTP says of the status"
            }
        }
    }

    /// The field that the status brings with it.
    package enum Companion: Sendable {
        case none
        /// RFC 9110 §15.5.2: a 401 carries at least one challenge of the scheme that is asked for.
        case authenticate
        /// The same for operators (RFC 6750 §3).
        case bearer
        /// RFC 9110 §15.5.6: a 405 lists the methods that are allowed.
        case allow
        /// RFC 9110 §15.6.4, RFC 6585 §4.
        case retryAfter
    }

    /// What ends with the answer.
    package enum Ending: Sendable {
        case request
        /// The connection too: where the request ends is not known, or its content is not read.
        case connection
    }

    package let status: Int
    package let blame: Blame
    package let nextStep: NextStep
    package let companion: Companion
    package let ending: Ending
    /// One sentence for people; it says nothing about policy. Empty where nothing went wrong.
    package let title: String

    init(
        _ status: Int,
        _ blame: Blame,
        _ step: NextStep,
        _ title: String,
        _ companion: Companion = .none,
        ending: Ending = .request
    ) {
        self.status = status
        self.blame = blame
        nextStep = step
        self.title = title
        self.companion = companion
        self.ending = ending
    }
}
