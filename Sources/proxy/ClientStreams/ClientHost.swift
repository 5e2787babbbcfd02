package import HTTPWire

/// Whose client connections they are: what serves their requests.
package protocol ClientHost: AnyObject {
    var clientLimits: ClientLimits { get }
    /// The gateway ends: connections close after their request.
    var isDraining: Bool { get }
    /// Now as an IMF-fixdate.
    var date: [UInt8] { get }
    /// Where a request's head is read, for use in ``ClientStreamOwner/begin(_:fault:)``.
    var heads: HeadScratch { get }

    /// Which settings are in force; see ``ClientPeer/settingsNumber``.
    var settingsNumber: UInt32 { get }
    /// Decides anew what depends on settings, which have changed.
    func settle(_ peer: inout ClientPeer)
    /// Who serves the request of a stream. ``ClientStreamOwner/begin(_:fault:)`` follows with the
    /// same head.
    func owner(
        for stream: any ClientStream,
        _ octets: Span<UInt8>,
        fault: Malformed.Reason?
    ) -> any ClientStreamOwner
    /// Appends the response to what is no request. The connection ends behind it.
    func answer(_ fault: HeadFault, into out: inout [UInt8])
    /// A client was too slow in taking its response.
    func clientWasTooSlow()
    /// TLS failed with a client.
    func clientTLSFailed()
    /// Something happened on an HTTP/2 connection.
    func noted(_ event: HTTP2Event)
    /// A connection goes on as another one.
    func replaced(_ connection: any ClientConnection, by successor: any ClientConnection)
    /// A connection was closed.
    func connectionClosed(_ connection: any ClientConnection)
}
