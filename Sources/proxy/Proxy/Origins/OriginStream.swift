import EventLoops
import HTTPWire

/// The origin's side of one request: how it goes to a server, and how its response comes.
///
/// The owner calls ``begin(_:framing:limits:)``, sends the head, adds content, and reads with
/// ``receive(for:)``; then it releases the stream, or resets it. The stream decides the
/// form of the bytes, and what becomes of the connection. Its counterpart is ``ClientStream``.
protocol OriginStream: AnyObject {
    var server: OriginServer { get }
    /// Whether a request before this one used the connection.
    var isReused: Bool { get }
    /// Nanoseconds from the last head byte of the request to the first of its response; 0 before.
    var waited: UInt64 { get set }
    /// The failure of TLS after the handshake; `nil` while there is none.
    var tlsFault: TLSFailure? { get }
    /// Whether the server may say that it has not processed a request; see ``OriginRead/refused``.
    var mayRefuse: Bool { get }

    // MARK: The request

    /// Begins a request. The stream accepts bytes.
    ///
    /// - framing: how the content goes to the server.
    func begin(_ facts: RequestFacts, framing: BodyFraming, limits: ResponseLimits)
    /// Sends a head in HTTP/1.1's form, the content that stands after it, and more content.
    ///
    /// - isWhole: it is all of the request. Otherwise the server can't take the request for whole,
    ///   however the connection ends, until ``requestTaken()``.
    func sendHead(
        _ head: Span<UInt8>,
        _ content: Span<UInt8>,
        isWhole: Bool
    ) -> Connection.WriteOutcome
    /// Adds content. A large piece is sent at once, small ones are gathered until ``flush()``.
    func append(_ content: Span<UInt8>)
    /// The content is complete. A client's trailers end at the gateway (RFC 9110 §6.5.1 ¶2):
    /// origins can't say that they take any, some take them for fields of the next request, and no
    /// signature covers them.
    func endContent()
    /// Sends the gathered bytes. The result covers all bytes since the last call.
    func flush() -> Connection.WriteOutcome
    /// The server has taken all of the request.
    func requestTaken()
    /// When the stream was given all of the request, or when the request began, while more is to
    /// come: milliseconds of ``EventLoop/now``.
    var givenAt: UInt64 { get set }
    /// Bytes that wait in memory to be sent.
    var unsentBytes: Int { get }
    /// Whether the server has taken no byte of the request.
    var sentNothing: Bool { get }

    // MARK: The response

    /// Whether no byte of a response has come.
    var hasReceivedNothing: Bool { get }
    /// The most bytes of one ``receive(for:)``.
    var inputMax: Int { get set }
    /// Reads once, and reports the events to the owner.
    func receive(for owner: any OriginStreamOwner) -> OriginRead
    /// The trailers of a complete response; `nil` for none.
    var trailers: TrailerSection? { get }
    /// Asks for ``OriginStreamOwner/originReadable(_:)`` when there may be something to read.
    func resumeReading()
    /// Makes the next read see what the server sent before its connection broke.
    func expectInput()
    /// Calls ``OriginStreamOwner/originTimedOut(_:)`` when this time is over; `nil` for never.
    func setDeadline(milliseconds: UInt64?)

    // MARK: The end

    /// The request is over, and the server has all of it. The connection continues where that is
    /// possible and allowed.
    ///
    /// - isReusable: whether the whole response was read.
    func release(isReusable: Bool, idleTime: UInt64, idleMax: Int)
    /// The connection is a tunnel from now on.
    func becomeTunnel(of owner: any ByteStreamOwner) -> any ByteStream
    /// Drops the request so that the server can't take it for whole.
    func reset()
    /// Drops the request, or the rest of its response.
    func close()
}

/// A stream that is looked for: while its connection is made, or while it waits for a connection.
protocol DialedStream: OriginStream {
    /// Whether it can take its request.
    var isConnected: Bool { get }
    /// When the wait began: milliseconds of ``EventLoop/now``.
    var begunAt: UInt64 { get }
    /// Why the handshake failed or has not ended; `nil` while it has not begun.
    var handshakeFault: TLSFailure? { get }
    /// What its wait lacks when its time is over.
    var lateness: SocketError { get }
    /// Gives the stream to a request.
    ///
    /// - flow: the flow in which the event loop schedules it.
    func take(for owner: any OriginStreamOwner, flow: Int)
    /// Counts that the server took no connection, where no other stream does.
    func noteFailure(_ error: SocketError)
    /// The request that it was made for has gone elsewhere. The connect goes on.
    func becomeTrial()
}

/// The owner of a request on an ``OriginStream``, which gets its response: an exchange of the
/// proxy, or a call of the gateway's own.
protocol OriginStreamOwner: AnyObject {
    /// A server took the connection. The stream accepts a request.
    func originConnected(_ stream: any OriginStream)
    /// No server took a connection. Nothing was sent.
    func originUnreachable(_ why: Unreached)
    /// There may be something to read; see ``OriginStream/receive(for:)``.
    func originReadable(_ stream: any OriginStream)
    /// All bytes that waited were sent.
    func originDrained(_ stream: any OriginStream)
    /// Bytes could not be sent. The server may have answered before it closed.
    func originWriteFailed(_ stream: any OriginStream)
    /// The deadline that was set has passed.
    func originTimedOut(_ stream: any OriginStream)

    // The events of ``OriginStream/receive(for:)``.

    /// An interim response (1xx, not 101). `false` ends the reading.
    ///
    /// - bytes: those that `head` was read from.
    func originInterim(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) -> Bool
    /// The head of the response. `false` ends the reading.
    ///
    /// - bytes: those that `head` was read from.
    /// - rest: what came after the head: content, or, after a 101, the other protocol's bytes.
    func originResponded(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        rest: Span<UInt8>
    ) -> Bool
    /// A piece of content, valid for the call.
    func originContent(_ piece: Span<UInt8>)
}

/// The host of the requests that go to origins on an event loop.
protocol OriginHost: AnyObject {
    /// The memory in which responses' heads are read.
    var heads: HeadScratch { get }
    /// Counts events on the way to a server.
    func note(_ event: OriginEvent)
}

/// An event on the way to a server.
enum OriginEvent {
    case connectBegan
    case connectFailed
    /// The handshake failed; the event of a failed connect follows.
    case handshakeFailed(TLSFailure)
    case connectionReused
    /// A connection of HTTP/2 takes requests.
    case http2Began
    /// It takes no more.
    case http2Ended
    /// A request has a stream of it.
    case streamBegan
    case http2Frames(HTTP2ClientSession.Counts)
    /// A request waits for a place at a server.
    case queued
    /// The request no longer waits, after this number of nanoseconds.
    case dequeued(UInt64)
    /// A request found the queue full, or had to leave it for another one.
    case queueFull
    /// A request waited too long.
    case queueTimeout
}

/// The result of ``OriginStream/receive(for:)``.
enum OriginRead {
    /// Some bytes were read; the response continues.
    case some
    /// Nothing now; ``OriginStreamOwner/originReadable(_:)`` follows.
    case none
    /// The response is complete.
    case complete
    /// The owner has ended the reading.
    case stopped
    /// The connection or the stream ended or failed before the response was complete.
    case broke
    /// The server says that it has not processed the request, or never got it.
    case refused
    /// The response is malformed.
    case malformed(Malformed.Reason)
    /// There were too many interim responses.
    case tooManyInterim
    /// The server broke the rules of its protocol.
    case violated

    /// The name of a fault in the response, for the log.
    var fault: String {
        switch self {
        case .malformed(let reason): reason.rawValue
        case .violated: "http2-violated"
        case .some, .none, .complete, .stopped, .broke, .refused, .tooManyInterim: ""
        }
    }
}

/// The progress of reading a response.
enum ResponseProgress {
    /// Its head is not complete.
    case head
    /// Its content is being read.
    case content
    /// All of it was read.
    case complete
    /// Reading can't continue.
    case broken
}
