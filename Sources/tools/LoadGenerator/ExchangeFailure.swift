/// Why a request got no answer that could be judged. The raw value is for people and JSON.
package enum ExchangeFailure: String, CaseIterable, Sendable {
    case connectFailed = "connect-failed"
    case connectTimeout = "connect-timeout"
    case responseTimeout = "response-timeout"
    /// The connection ended or broke before the response was complete.
    case connectionBroken = "connection-broken"
    /// The response is no valid HTTP.
    case responseMalformed = "response-malformed"
}

extension ExchangeFailure: Comparable {
    /// In the order of their names.
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
