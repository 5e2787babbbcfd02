import EventLoops
import HTTPWire
import Verification

/// Whose client connections they are: what serves their requests.
protocol ClientHost: AnyObject {
    var settings: ProxySettings { get }
    /// The gateway ends: connections close after their request.
    var isDraining: Bool { get }
    /// Now as an IMF-fixdate.
    var date: [UInt8] { get }
    /// The memory in which a request's head is read, for use in
    /// ``ClientStreamOwner/begin(_:fault:)``.
    var heads: HeadScratch { get }
    /// The memory in which HTTP/2's heads are built.
    var headMemory: HeadMemory { get }

    /// The number of the current settings; see ``ClientPeer/settingsNumber``.
    var settingsNumber: UInt32 { get }
    /// Updates a peer after the settings have changed.
    func settle(_ peer: ClientPeer)
    /// The owner that serves the request of a stream. ``ClientStreamOwner/begin(_:fault:)`` follows
    /// with the same head.
    func owner(
        for stream: any ClientStream,
        _ bytes: Span<UInt8>,
        fault: Malformed.Reason?
    ) -> any ClientStreamOwner
    /// Appends the response to input that is no request. The connection ends after it.
    func answer(_ fault: HeadFault, into out: inout [UInt8])
    /// A client was too slow in taking its response.
    func clientWasTooSlow()
    /// Counts a further concurrent request of a connection as a connection of its address; `false`
    /// when the address has the most allowed. Give it back with ``giveBackPlace(of:)``.
    func takePlace(of entry: AddressEntry?) -> Bool
    /// Counts such a request that is already under way: no limit applies.
    func keepPlace(of entry: AddressEntry?)
    /// Such a request is over.
    func giveBackPlace(of entry: AddressEntry?)
    /// Adds this number to the bytes of responses that wait on HTTP/2 connections; it may be
    /// negative. The host may ask any connection to drop waiting responses.
    func countUnsent(_ change: Int)
    func clientTLSFailed(_ failure: TLSFailure, _ address: IPAddress)
    /// Something happened on an HTTP/2 connection.
    func noted(_ event: HTTP2Event)
    /// Another connection object continues a connection.
    func replaced(_ connection: any ClientConnection, by successor: any ClientConnection)
    func connectionClosed(_ connection: any ClientConnection)
}
