import EventLoops
import HTTP2Wire
import HTTPWire
import Services

/// The client's side of one request.
///
/// The owner of the request asks for content with ``readContent(_:)`` and answers with
/// ``beginResponse(_:_:adding:)``, ``append(_:)``, ``endContent(_:)`` and ``flush()``, or with
/// ``respond(_:)``; then it calls ``finish()``. How the bytes look, whether the
/// connection goes on, and how it ends are the stream's business.
///
/// A call that finds the client gone closes the stream and tells the owner with
/// ``ClientStreamOwner/clientClosed(_:)`` before it returns.
protocol ClientStream: AnyObject {
    // MARK: The client

    /// Who is at the connection's other end.
    var peer: ClientPeer { get }
    /// The user at the other end of a Unix socket; `nil` elsewhere.
    var peerUser: UInt32? { get }
    /// The port of the other end, and where the connection came in; of a Unix socket without ports
    /// and addresses.
    var socketEnds: (peerPort: UInt16, own: SocketAddress) { get }
    /// What the client speaks.
    var spoken: ClientProtocol { get }
    /// The turns of the event loop that the client uses.
    var flow: Int { get }

    // MARK: The request's content

    /// Whether there is content, and whether its length is known.
    var contentFraming: BodyFraming { get }
    /// Bytes of content that were read.
    var contentCount: UInt64 { get }
    /// Whether all content was read. Already true while the last piece of content with a length is
    /// handed over.
    var isContentComplete: Bool { get }
    /// Whether content is here that was not read.
    var hasContent: Bool { get }
    /// Whether all content is here and its length is known.
    var hasWholeContent: Bool { get }
    /// Takes all content, if all of it is here and it has at most `max` bytes.
    func takeWholeContent(max: UInt64) -> [UInt8]?
    /// Drops content that is here; `true` when that was all of it.
    func dropContent() -> Bool
    /// Reads what is here, or once from the client. Each piece is handed over, valid for the call;
    /// a `false` ends the reading: the owner has taken another turn.
    func readContent(_ take: (Span<UInt8>) -> Bool) -> ContentRead
    /// Asks for ``ClientStreamOwner/contentReady()`` when there may be content.
    func resumeReading()
    /// Gives the client time for content, from now on.
    func awaitContent()
    /// Nothing is awaited of the client.
    func expectNothing()
    /// The client has all the time: the gateway is at work.
    func stopDeadline()
    /// Says `100 Continue` if the client waits for that.
    func sendContinue()

    // MARK: The response

    /// Bytes that wait in memory to be sent. While there are any, the owner stops the origin.
    var unsentBytes: Int { get }
    /// How much of its response the owner reads from the origin at once.
    var readMax: Int { get }
    /// Passes an interim response on, if the client can take it.
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
    /// The content is complete. Trailers are passed on where the client's protocol has them.
    func endContent(_ trailers: TrailerSection?)
    /// Sends what was gathered. What the client does not take at once waits in memory, and
    /// ``ClientStreamOwner/clientDrained()`` follows.
    ///
    /// Answers for all that was sent since the last call.
    @discardableResult
    func flush() -> ClientOutput
    /// Sends a response of the gateway's own: complete, and instead of any other.
    @discardableResult
    func respond(_ response: LocalResponse) -> ClientOutput
    /// The response will be the connection's last: how the request ends is not known.
    func endAfterResponse()

    // MARK: The end

    /// The response is complete. The connection takes its next request, or ends so that the client
    /// gets all of the response.
    func finish()
    /// Does not read the next request for a while.
    func pause()
    /// Drops the client in a way that can't be mistaken for the end of a response.
    func reset()
    /// Closes the stream. The owner is told.
    func close()
    /// Sends an origin's 101 and the bytes behind it, and hands the connection over: from now on
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

/// What became of bytes for a client.
enum ClientOutput {
    /// The kernel has them all.
    case sent
    /// Some wait in memory; ``ClientStreamOwner/clientDrained()`` follows.
    case queued
    /// The client is gone. The stream is closed, and the owner was told.
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
    /// The framing is broken. The pieces before were handed over.
    case malformed(Malformed.Reason)
    /// The client is gone. The stream is closed, and the owner was told.
    case closed
}

/// Why a stream was closed before its response had ended.
enum ClientEnd: Equatable {
    /// The client has gone.
    case aborted
    /// The client took its response too slowly.
    case tooSlow
    /// The gateway ends.
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
    /// What waited for the client has been sent.
    func clientDrained()
    /// The client has gone in both directions while nobody read. `true` closes the stream.
    func clientBroke() -> Bool
    /// The stream was closed before ``ClientStream/finish()``.
    func clientClosed(_ why: ClientEnd)
    /// Whether the request is complete: the client does nothing but wait.
    var isUploaded: Bool { get }
}

extension ClientStream {
    var peerUser: UInt32? { nil }
    var readMax: Int { EventLoop.inputBytes }
}

/// A client's connection, whatever its protocol: what its host asks of it.
protocol ClientConnection: AnyObject {
    /// Who is at the other end.
    var client: ClientPeer { get }
    /// Bytes of responses that wait for windows to open.
    var waitingBytes: Int { get }
    /// Ends the requests whose responses wait for windows, in its next turn.
    func dropWaiting()
    /// The gateway ends: the connection takes no more requests than are on their way.
    func drain()
    /// The time to end by itself is over.
    func abort()
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

/// What an HTTP/2 connection tells its host for metrics and log.
enum HTTP2Event {
    /// A client speaks HTTP/2.
    case began
    /// Streams that ended by an error of the client's, or were refused.
    case streamsFailed(Int)
    /// A stream's client let a response wait too long, or too much of it.
    case stalled
    /// A limit was exceeded; the connection ends.
    case exceeded(HTTP2Excess, IPAddress)
}

/// Why there is no request.
enum HeadFault {
    case malformed(Malformed.Reason)
    /// The head was not complete in time.
    case timeout
}
