import EventLoops
import HTTPWire
import Services
import Verification

/// The client's side of one request.
///
/// The owner of the request asks for content with ``readContent(_:)`` and answers with
/// ``beginResponse(_:_:adding:)``, ``append(_:)``, ``endContent(_:)`` and ``flush()``, or with
/// ``respond(_:)``; then it calls ``finish()``. The stream decides the form of the bytes, whether
/// the connection continues, and how it ends.
///
/// A call that finds the client gone closes the stream and tells the owner with
/// ``ClientStreamOwner/clientClosed(_:)`` before it returns.
protocol ClientStream: AnyObject {
    // MARK: The client

    /// The peer of the connection.
    var peer: ClientPeer { get }
    /// The user at the other end of a Unix socket; `nil` elsewhere.
    var peerUser: UInt32? { get }
    /// The peer's port, and the local address of the connection. A Unix socket has neither.
    var socketEnds: (peerPort: UInt16, own: SocketAddress) { get }
    /// The client's protocol.
    var spoken: ClientProtocol { get }
    /// The flow of the client in the event loop's scheduling.
    var flow: Int { get }
    /// What a message says of the request that it names; `nil` for a request of the client's own.
    var asked: AskedRequest? { get }

    // MARK: The request's content

    /// Whether there is content, and whether its length is known.
    var contentFraming: BodyFraming { get }
    /// Bytes of content that were read.
    var contentCount: UInt64 { get }
    /// Whether all content was read. It is already true while the last piece of content with a
    /// known length is handed over.
    var isContentComplete: Bool { get }
    /// Whether unread content is here.
    var hasContent: Bool { get }
    /// Whether all content is here and its length is known.
    var hasWholeContent: Bool { get }
    /// Takes all content, if all of it is here and it has at most `max` bytes.
    func takeWholeContent(max: UInt64) -> [UInt8]?
    /// Drops content that is here; `true` when that was all of it, or when the rest of it will be
    /// dropped as it comes and the connection goes on.
    func dropContent() -> Bool
    /// Reads the content that is here, or reads once from the client. Each piece is handed over,
    /// valid for the call. A `false` ends the reading: the owner has another turn later.
    func readContent(_ take: (Span<UInt8>) -> Bool) -> ContentRead
    /// Asks for ``ClientStreamOwner/contentReady()`` when there may be content.
    func resumeReading()
    /// Starts the client's time for content.
    func awaitContent()
    /// Ends waiting for the client.
    func expectNothing()
    /// Stops the client's deadline: the gateway works.
    func stopDeadline()
    /// Sends `100 Continue` if the client waits for it.
    func sendContinue()

    // MARK: The response

    /// Bytes that wait in memory to be sent. While there are any, the owner does not read from the
    /// origin.
    var unsentBytes: Int { get }
    /// The most bytes of the response that the owner reads from the origin at once.
    var readMax: Int { get }
    /// Forwards an interim response, if the client can take it.
    ///
    /// - bytes: those that `head` was read from.
    func sendInterim(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>)
    /// Begins a response with an origin's head. Its content follows, then ``flush()``.
    ///
    /// - bytes: those that `head` was read from.
    /// - adding: fields of the gateway's own.
    func beginResponse(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        adding fields: [(name: StaticString, value: String)]
    )
    /// Adds content. A large piece is sent at once, small ones are gathered.
    func append(_ content: Span<UInt8>)
    /// The content is complete. Trailers are forwarded where the client's protocol has them.
    func endContent(_ trailers: TrailerSection?)
    /// Sends the gathered bytes. Bytes that the client does not take at once wait in memory, and
    /// ``ClientStreamOwner/clientDrained()`` follows.
    ///
    /// The result covers all bytes since the last call.
    @discardableResult
    func flush() -> ClientOutput
    /// Sends a whole response of the gateway's own, instead of any other.
    @discardableResult
    func respond(_ response: LocalResponse) -> ClientOutput
    /// Makes the response the connection's last: how the request ends is not known.
    func endAfterResponse()

    // MARK: The end

    /// The response is complete. The connection takes its next request, or ends so that the client
    /// gets all of the response.
    func finish()
    /// Delays the next request.
    func pause()
    /// Drops the client in a way that it can't mistake for the end of a response.
    func reset()
    /// Closes the stream and notifies the owner.
    func close()
    /// Sends an origin's 101 and the bytes after it, and hands over the connection: from now on
    /// `owner` gets its events.
    ///
    /// - Returns: the client's bytes, and those of them that came early; `nil` when it was closed.
    func upgrade(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        behind: Span<UInt8>,
        to owner: any ByteStreamOwner
    ) -> (stream: any ByteStream, early: [UInt8])?
}

/// What the message of a call says of the request that it names.
struct AskedRequest {
    /// The peer that has sent the request to the asking proxy; `nil` where that is not known.
    let peer: IPAddress?
    /// Whether the target and each field line are the client's own bytes.
    let isExact: Bool
    /// Whether the content can be all of the request's content, and is its own bytes.
    let isWhole: Bool
    /// Names of its fields by which an application could execute another request.
    let misleading: [String]
}

/// What became of bytes for a client.
enum ClientOutput {
    /// The kernel has them all.
    case sent
    /// Some wait in memory; ``ClientStreamOwner/clientDrained()`` follows.
    case queued
    /// The client is gone. The stream is closed, and the owner was notified.
    case closed
}

/// What reading content brought.
enum ContentRead {
    /// Pieces were handed over; more is to come.
    case some
    /// Pieces were handed over, maybe none, and the content is complete.
    case complete
    /// Nothing now; ``ClientStreamOwner/contentReady()`` follows.
    case none
    /// The owner has ended the reading.
    case stopped
    /// The framing is broken. The pieces before the fault were handed over.
    case malformed(Malformed.Reason)
    /// The client is gone. The stream is closed, and the owner was notified.
    case closed
}

/// Why a stream was closed before its response had ended.
enum ClientEnd: Equatable {
    /// The client has gone.
    case aborted
    /// The client took its response too slowly.
    case tooSlow
    /// The gateway drains.
    case drained
}

/// The request of a stream: what the stream tells it.
protocol ClientStreamOwner: AnyObject {
    /// The head is complete. Called once, first.
    ///
    /// - bytes: the head in HTTP/1.1's form, from which the event loop's `RequestHead` was read. A
    ///   stream of another protocol writes its fields in this form, so that one parser reads all.
    /// - fault: why the head is malformed.
    func begin(_ bytes: Span<UInt8>, fault: Malformed.Reason?)
    func contentReady()
    /// Content was awaited and did not come, or too slowly.
    func contentTimedOut()
    /// All bytes that waited for the client were sent.
    func clientDrained()
    /// The client has closed both directions, and the stream was not read at that time. `true`
    /// closes the stream.
    func clientBroke() -> Bool
    /// The stream was closed before ``ClientStream/finish()``.
    func clientClosed(_ why: ClientEnd)
    /// Whether the request is complete: the client only waits.
    var isUploaded: Bool { get }
}

extension ClientStream {
    var peerUser: UInt32? { nil }
    var asked: AskedRequest? { nil }
    var readMax: Int { EventLoop.inputBytes }
}

/// A client's connection, whatever its protocol: what its host asks of it.
protocol ClientConnection: AnyObject {
    /// Who is at the other end.
    var client: ClientPeer { get }
    /// Bytes of responses that wait for flow-control windows to open.
    var waitingBytes: Int { get }
    /// Ends the requests whose responses wait for windows, in its next turn.
    func dropWaiting()
    /// The gateway drains: the connection accepts only the requests that are already on their way.
    func drain()
    /// The drain time is over.
    func abort()
}

extension ClientConnection where Self: Connection {
    /// Takes the certificate that the client sent in its TLS handshake.
    func noteCertificate() {
        guard asksClients, client.provenance.certificate == nil, let shown = clientCertificate
        else { return }
        client.provenance.certificate = ClientCertificate(
            fingerprint: shown.fingerprint,
            subject: shown.subject
        )
    }
}

// HTTP/1.1 has no windows.
extension ClientConnection {
    var waitingBytes: Int { 0 }
    func dropWaiting() {}
}

/// What a client speaks. The raw value is the log's word: add, do not rename.
enum ClientProtocol: String, CaseIterable, Sendable {
    case http10 = "http/1.0"
    case http11 = "http/1.1"
    case http2 = "h2"
}

/// Why there is no request.
enum HeadFault {
    case malformed(Malformed.Reason)
    /// The head was not complete in time.
    case timeout
}

/// Who is at the other end of a connection, as the current settings see it. One for a connection,
/// whatever protocol it goes on with.
final class ClientPeer {
    /// Of a Unix socket the loopback address.
    let address: IPAddress
    /// The other end is a Unix socket, which has no address.
    let isUnix: Bool
    let isSecure: Bool
    /// How the peer asks for decisions; `nil` where its requests go to origins.
    let decides: DecisionQuestion?
    /// What the address has used of its limits; `nil` where it has none of its own.
    @exclusivity(unchecked) var entry: AddressEntry?
    /// Tells origins who the client is.
    @exclusivity(unchecked) var provenance: ProvenanceWriter
    /// Whether the peer is a proxy that can't name its client.
    @exclusivity(unchecked) var isNameless = false
    /// The number of the settings by which it was decided whether the peer is trusted.
    @exclusivity(unchecked) var settingsNumber: UInt32

    init(
        _ peer: SocketAddress,
        isSecure: Bool,
        decides: DecisionQuestion?,
        provenance: consuming ProvenanceWriter,
        settingsNumber: UInt32
    ) {
        address = peer.ipAddress
        isUnix = peer.isUnix
        self.isSecure = isSecure
        self.decides = decides
        self.provenance = provenance
        self.settingsNumber = settingsNumber
    }

    /// Whether what it says of its clients is believed.
    var isTrusted: Bool { provenance.peerIsTrusted }
    var certificate: ClientCertificate? { provenance.certificate }

}

/// What a client still sends after its last answer: it is read and discarded for a bounded time and
/// amount, so that the client sees the answer and not a reset (RFC 9112 §9.6). Many HTTP/1 clients
/// write all of their content before they read.
struct Lingering {
    /// In milliseconds of the event loop's clock.
    private let end: UInt64
    private let silenceMax: UInt64
    private var remainingBytes: Int

    /// - now: milliseconds of the event loop's clock.
    init(_ timeouts: Timeouts, _ limits: ProxyLimits, now: UInt64) {
        end = now &+ timeouts.lingerTotal
        silenceMax = timeouts.linger
        remainingBytes = limits.drainBytesMax
    }

    /// The time to wait for more, in milliseconds: 0 when the time is over.
    func wait(now: UInt64) -> UInt64 { min(silenceMax, end - min(end, now)) }

    /// Counts bytes that were discarded.
    ///
    /// - Returns: whether more may be read.
    mutating func discard(_ count: Int) -> Bool {
        guard count <= remainingBytes else { return false }
        remainingBytes -= count
        return true
    }
}
