package import HTTPWire

/// Who sends a request on an ``OriginStream`` and gets its response: an exchange of the proxy, or a
/// call of the gateway's own.
package protocol OriginStreamOwner: AnyObject {
    /// A server took the connection that was dialled. The stream takes a request.
    func originConnected(_ stream: OriginStream)
    /// No server took a connection; which one was tried last. Nothing was sent.
    func originUnreachable(_ fault: DialFault, _ server: OriginServer?)
    /// There may be something to read; see ``OriginStream/receive(for:)``.
    func originReadable(_ stream: OriginStream)
    /// What waited to be sent has been sent.
    func originDrained(_ stream: OriginStream)
    /// Bytes could not be sent. The server may have answered before it closed.
    func originWriteFailed(_ stream: OriginStream)
    /// The deadline that was set has passed.
    func originTimedOut(_ stream: OriginStream)

    // What ``OriginStream/receive(for:)`` found.

    /// An interim response (1xx, not 101). `false` ends the reading.
    ///
    /// - octets: those that `head` was read from.
    func originInterim(_ head: borrowing ResponseHead, _ octets: Span<UInt8>) -> Bool
    /// The head of the response. `false` ends the reading.
    ///
    /// - octets: those that `head` was read from.
    /// - rest: what came behind the head: content, or, behind a 101, the other protocol's bytes.
    func originResponded(
        _ head: borrowing ResponseHead,
        _ octets: Span<UInt8>,
        rest: Span<UInt8>
    ) -> Bool
    /// A piece of content, valid for the call.
    func originContent(_ piece: Span<UInt8>)
}
