import HTTP2Wire
import HTTPWire
import TLSSession
import Verification

/// Whose client connections they are: what serves their requests.
protocol ClientHost: AnyObject {
    var settings: ProxySettings { get }
    /// The gateway ends: connections close after their request.
    var isDraining: Bool { get }
    /// Now as an IMF-fixdate.
    var date: [UInt8] { get }
    /// Where a request's head is read, for use in ``ClientStreamOwner/begin(_:fault:)``.
    var heads: HeadScratch { get }
    /// Where HTTP/2's heads are built.
    var headMemory: HeadMemory { get }

    /// Which settings are in force; see ``ClientPeer/settingsNumber``.
    var settingsNumber: UInt32 { get }
    /// Decides anew what depends on settings, which have changed.
    func settle(_ peer: ClientPeer)
    /// Who serves the request of a stream. ``ClientStreamOwner/begin(_:fault:)`` follows with the
    /// same head.
    func owner(
        for stream: any ClientStream,
        _ bytes: Span<UInt8>,
        fault: Malformed.Reason?
    ) -> any ClientStreamOwner
    /// Appends the response to what is no request. The connection ends behind it.
    func answer(_ fault: HeadFault, into out: inout [UInt8])
    /// A client was too slow in taking its response.
    func clientWasTooSlow()
    /// Counts a request beside another one on its connection as a connection of its address;
    /// `false` when that has as many as it may. Give it back with ``giveBackPlace(of:)``.
    func takePlace(of entry: AddressEntry?) -> Bool
    /// The same for a request that is under way already: no limit counts.
    func keepPlace(of entry: AddressEntry?)
    /// Such a request is over.
    func giveBackPlace(of entry: AddressEntry?)
    /// So many more bytes of responses wait on HTTP/2 connections, or fewer. The host may ask any
    /// connection to drop what waits.
    func countUnsent(_ change: Int)
    func clientTLSFailed(_ failure: TLSFailure, _ address: IPAddress)
    /// Something happened on an HTTP/2 connection.
    func noted(_ event: HTTP2Event)
    /// A connection goes on as another one.
    func replaced(_ connection: any ClientConnection, by successor: any ClientConnection)
    func connectionClosed(_ connection: any ClientConnection)
}
