/// What went wrong on the origin's side before a response began.
enum OriginFailure: String {
    case originUnreachable = "origin-unreachable"
    /// No descriptor or memory for a connection: the gateway's own trouble, and no server's.
    case outOfDescriptors = "out-of-descriptors"
    case originClosed = "origin-closed"
    case originTimeout = "origin-timeout"
    case responseMalformed = "response-malformed"
    case tooManyInterimResponses = "too-many-interim-responses"

    /// RFC 9110 §15.6.3, §15.6.4, §15.6.5.
    var status: Int {
        switch self {
        case .originTimeout: 504
        case .outOfDescriptors: 503
        case .originUnreachable, .originClosed, .responseMalformed, .tooManyInterimResponses: 502
        }
    }
}
