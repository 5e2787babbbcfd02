package import HTTPWire

/// What ``OriginStream/receive(for:)`` found.
package enum OriginRead {
    /// Something was read; the response goes on.
    case some
    /// Nothing now; ``OriginStreamOwner/originReadable(_:)`` follows.
    case none
    /// The response is complete.
    case complete
    /// The owner has ended the reading.
    case stopped
    /// The connection ended or failed before the response was complete.
    case broke
    /// The response is malformed.
    case malformed(Malformed.Reason)
    /// There were more interim responses than may be.
    case tooManyInterim
}
