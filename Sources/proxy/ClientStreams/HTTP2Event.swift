package import HTTP2Wire
package import HTTPWire

/// What an HTTP/2 connection tells its host for metrics and log.
package enum HTTP2Event {
    /// A client speaks HTTP/2.
    case began
    /// Streams that ended by an error of the client's, or were refused.
    case streamsFailed(Int)
    /// A stream's client let a response wait too long, or too much of it.
    case stalled
    /// A limit was exceeded; the connection ends.
    case exceeded(HTTP2Excess, IPAddress)
}
