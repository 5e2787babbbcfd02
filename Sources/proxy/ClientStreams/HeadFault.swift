package import HTTPWire

/// Why there is no request.
package enum HeadFault {
    case malformed(Malformed.Reason)
    /// The head was not complete in time.
    case timeout
}
