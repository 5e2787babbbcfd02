import EventLoops
import HTTPWire
import Services
import Telemetry

/// The origin's side of one request: how it goes to a server, and how its response comes.
///
/// The owner calls ``begin(_:framing:limits:)``, sends the head, adds content, and reads with
/// ``receive(for:)``; then it releases the stream, or resets it. The stream decides the
/// form of the bytes, and what becomes of the connection. Its counterpart is ``ClientStream``.
protocol OriginStream: AnyObject {
    /// The server at the other end.
    var servedBy: any OriginPeer { get }
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

/// A server of an origin, as requests see it.
protocol OriginPeer: AnyObject {
    var settings: OriginServerSettings { get }
}

/// The search for a stream, while it runs.
protocol StreamSearch: AnyObject {
    /// Nanoseconds for which it has waited for a place at a server.
    var waited: UInt64 { get }
    /// The server that was tried last.
    var lastServer: (any OriginPeer)? { get }
    /// Ends the search. Its owner no longer needs a stream.
    func cancel()
}

/// Why no server took a connection.
struct Unreached {
    let failure: OriginFailure
    /// The server that was tried last.
    var server: (any OriginPeer)?
    /// Why the handshake with that server failed, where it did.
    var tlsFailure: TLSFailure?
}

/// Who looks for streams: what a stream tells it.
protocol StreamSeeker: AnyObject {
    /// The flow in which the event loop schedules the stream.
    var flow: Int { get }
    /// The stream can take the request.
    func connected(_ stream: any DialedStream)
    /// It can't be had.
    func failed(_ stream: any DialedStream, _ error: SocketError)
    /// The deadline that was set for it has passed.
    func deadlinePassed(_ stream: any DialedStream)
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
    /// Counts what happens on the way to a server.
    func count(_ counter: Counter, _ amount: UInt64)
    /// A request no longer waits for a place at a server.
    func dequeued(after nanoseconds: UInt64)
}

extension OriginHost {
    func count(_ counter: Counter) { count(counter, 1) }
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
