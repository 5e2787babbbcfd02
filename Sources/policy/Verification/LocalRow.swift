/// What the gateway answers itself, and what follows for client and operators: a row of the table
/// of local responses. Refusals have theirs in ``RefusalRow``, all other outcomes in Services.
package struct LocalRow: Sendable {
    /// The party at fault.
    package enum Blame: String, Sendable {
        case client
        case origin
        case gateway
        /// The request was served.
        case nobody
    }

    /// The client's next step.
    package enum NextStep: String, Sendable {
        /// Sign again with the challenge in this answer.
        case signAgain = "sign-again"
        /// Make a new key and enrol it.
        case enrol
        /// Nothing at run time: the client's code is wrong.
        case fixClient = "fix-client"
        /// Nothing: this build or device is not admitted.
        case none
        /// Try again after the time in Retry-After.
        case retryLater = "retry-later"
        /// HTTP's own rules apply, and the answer says no more.
        case unsaid
        /// Get a new token of a proof that the rule names, and send it.
        case getToken = "get-token"

        /// The client's next step, in words for an operator.
        package var advice: String {
            switch self {
            case .signAgain: "signs the request again, with the challenge of the answer"
            case .enrol: "makes a new key, and enrols it"
            case .fixClient: "can do nothing at run time: its code has to be changed"
            case .none: "can do nothing: this device, build or content is not admitted"
            case .retryLater: "tries again after the time in Retry-After"
            case .unsaid: "does what HTTP says of the status"
            case .getToken: "gets a new token from its issuer, and sends the request with it"
            }
        }
    }

    /// The field that the status requires.
    package enum Companion: Sendable {
        case none
        /// RFC 9110 §15.5.2: a 401 has at least one challenge of the requested scheme. Another
        /// status may have one (§11.6.1).
        case authenticate
        /// A challenge for operators (RFC 6750 §3).
        case bearer
        /// RFC 9110 §15.5.6: a 405 lists the methods that are allowed.
        case allow
        /// RFC 9110 §15.6.4, RFC 6585 §4.
        case retryAfter
    }

    /// What ends with the answer.
    package enum Ending: Sendable {
        case request
        /// The connection too: the end of the request is not known, or its content is not read.
        case connection
    }

    package let status: Int
    package let blame: Blame
    package let nextStep: NextStep
    package let companion: Companion
    package private(set) var ending = Ending.request
    /// The status for a gRPC call.
    package private(set) var grpc: GRPCStatus
    /// One sentence for people; it says nothing about policy. Empty without a fault.
    package let title: String

    package init(
        _ status: Int,
        _ blame: Blame,
        _ step: NextStep,
        _ title: String,
        _ companion: Companion = .none
    ) {
        self.status = status
        self.blame = blame
        nextStep = step
        self.title = title
        self.companion = companion
        grpc = GRPCStatus(answering: status)
    }

    /// The row of an answer that ends the connection too.
    package var endingConnection: LocalRow {
        var row = self
        row.ending = .connection
        return row
    }

    /// The row of an answer after which the same request is good later. `Retry-After` says when.
    package static func later(_ status: Int, _ blame: Blame, _ title: String) -> LocalRow {
        LocalRow(status, blame, .retryLater, title, .retryAfter)
    }

    /// The row with another status for a gRPC call.
    package func calling(_ status: GRPCStatus) -> LocalRow {
        var row = self
        row.grpc = status
        return row
    }
}

/// The status of a gRPC call, as `grpc-status` has it.
package enum GRPCStatus: Int, CaseIterable, Sendable {
    case ok = 0
    case invalidArgument = 3
    case deadlineExceeded = 4
    case permissionDenied = 7
    case resourceExhausted = 8
    case aborted = 10
    case unimplemented = 12
    case internalError = 13
    case unavailable = 14
    case unauthenticated = 16

    /// The status that says what this status of HTTP says in the gateway's own answers.
    package init(answering status: Int) {
        self =
            switch status {
            case ..<400: .ok
            case 401: .unauthenticated
            case 403: .permissionDenied
            case 404, 405, 501: .unimplemented
            case 408, 504: .deadlineExceeded
            case 409: .aborted
            case 413, 414, 429, 431: .resourceExhausted
            case 400..<500: .invalidArgument
            case 502, 503: .unavailable
            default: .internalError
            }
    }
}
