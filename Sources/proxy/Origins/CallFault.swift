package import HTTPWire

/// Why a call has no response.
package enum CallFault: Error, Equatable {
    /// The target is not in origin-form.
    case targetMalformed
    /// No server takes a connection.
    case unreachable(DialFault)
    /// The connection ended or broke before the response was complete.
    case closed
    /// The response did not begin in time.
    case firstByteTimedOut
    /// The response began and did not go on in time.
    case stalled
    /// The time for the call is over.
    case timedOut
    case responseMalformed(Malformed.Reason)
    case tooManyInterimResponses
    /// The content has more bytes than may be.
    case contentTooLarge
}
