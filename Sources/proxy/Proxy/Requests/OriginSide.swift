import EventLoops
import HTTPWire

/// The origin's side of a request: the connection to a server or the search for one, with the data
/// for the log and the metrics.
struct OriginSide {
    enum Link {
        case none
        /// Servers are tried until one takes a connection.
        case dialing(any StreamSearch)
        case connected(any OriginStream)
    }

    private(set) var link = Link.none
    /// The deadline for the head of a response, over all tries: milliseconds of the event loop's
    /// clock; 0 before the first try.
    private(set) var respondBy: UInt64 = 0
    /// When a server got the request, in the last attempt: monotonic nanoseconds.
    private(set) var sentAt: UInt64 = 0
    /// Nanoseconds for which the request waited for a place at a server.
    private(set) var queued: UInt64 = 0
    private(set) var servedBy: (server: any OriginPeer, isReused: Bool)?
    /// The server that was tried last, where none was reached.
    private(set) var lastTried: (any OriginPeer)?
    /// Why TLS failed with that server, where it did.
    var tlsFailure: TLSFailure.Reason?
    /// When the disk with the content began to be late, monotonic nanoseconds; `nil` if it is not.
    private var diskLateSince: UInt64?
    /// The origin in whose retries it counts, while it is a retry.
    private var retried: OriginState?

    /// The connection to the server that has the request.
    var stream: (any OriginStream)? {
        if case .connected(let stream) = link { stream } else { nil }
    }

    /// The first try begins.
    mutating func begin(now: UInt64, milliseconds: UInt64) {
        let (end, overflows) = now.addingReportingOverflow(milliseconds)
        respondBy = overflows ? .max : end
    }

    /// Milliseconds left for the head of the response.
    func left(now: UInt64) -> UInt64 { respondBy > now ? respondBy - now : 0 }

    mutating func dials(_ dial: any StreamSearch) { link = .dialing(dial) }

    /// The dial has ended, and its request still wants the result.
    mutating func dialEnded() {
        if case .dialing(let dial) = leave() { note(dial) }
    }

    /// Notes how long the request waited for a place at a server.
    mutating func note(_ dial: any StreamSearch) { queued &+= dial.waited }

    mutating func connected(_ stream: any OriginStream, at nanoseconds: UInt64) {
        link = .connected(stream)
        sentAt = nanoseconds
        servedBy = (stream.servedBy, stream.isReused)
    }

    mutating func failed(_ why: Unreached) {
        link = .none
        lastTried = why.server
        if let failure = why.tlsFailure { tlsFailure = failure.reason }
    }

    /// Takes the connection, or the search for one, from the request.
    mutating func leave() -> Link {
        defer { link = .none }
        if case .dialing(let dial) = link { lastTried = dial.lastServer }
        return link
    }

    /// The disk is late.
    ///
    /// - Returns: nanoseconds since it began, with no piece read since then.
    mutating func diskIsLate(at nanoseconds: UInt64) -> UInt64 {
        let since = diskLateSince ?? nanoseconds
        diskLateSince = since
        return nanoseconds &- since
    }

    /// The disk has given a piece.
    mutating func diskHasRead() { diskLateSince = nil }

    /// Counts the request as a retry of an origin, or not any more.
    mutating func countRetry(of origin: OriginState?) {
        retried?.retryEnded()
        origin?.retryBegan()
        retried = origin
    }
}
