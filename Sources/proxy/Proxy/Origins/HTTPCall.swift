package import EventLoops
package import HTTPWire
package import Services

/// A request of the gateway's own that is under way.
package final class HTTPCall: OriginStreamOwner {
    private enum State {
        /// Leaves to `connecting`, `awaiting`, `over`.
        case begun
        /// Leaves to `awaiting`, `over`.
        case connecting(OriginDial)
        /// Leaves to `reading`, `connecting`, `over`.
        case awaiting(any OriginStream)
        /// Leaves to `over`.
        case reading(any OriginStream, HTTPResponse)
        case over
    }

    private let client: HTTPClient
    private let ended: (Result<HTTPResponse, CallFault>) -> Void
    private var state = State.begun
    private var method = Method.other
    private var bytes: [UInt8] = []
    private let end: UInt64
    private var mayRepeat: Bool
    private var content: [UInt8] = []
    /// How the request's content is delimited.
    private var framing = BodyFraming.none

    init(_ client: HTTPClient, ended: @escaping (Result<HTTPResponse, CallFault>) -> Void) {
        self.client = client
        self.ended = ended
        let (end, overflows) = client.loop.now.addingReportingOverflow(client.settings.totalTimeout)
        self.end = overflows ? .max : end
        mayRepeat = client.settings.idleMax > 0
    }

    func begin(_ request: HTTPRequest) {
        guard let bytes = request.bytes(closes: client.settings.idleMax == 0) else {
            return finish(.failure(.targetMalformed))
        }
        self.bytes = bytes
        if request.isChunked {
            framing = .chunked
        } else if !request.content.isEmpty {
            framing = .length(UInt64(request.content.count))
        }
        method = request.method
        mayRepeat = mayRepeat && method.isIdempotent
        connect(reusesIdle: true)
    }

    /// Ends the call silently.
    package func cancel() {
        client.loop.preconditionOnQueue()
        leave()
    }

    // MARK: Connecting

    private func connect(reusesIdle: Bool) {
        state = .begun
        switch client.pool.connect(for: self, .init(reusesIdle: reusesIdle, end: end)) {
        case .connected(let stream): originConnected(stream)
        case .dialing(let dial): state = .connecting(dial)
        case .failed(let why): originUnreachable(why)
        }
    }

    func originUnreachable(_ why: Unreached) {
        finish(.failure(isLate ? .timedOut : .unreachable(why.failure, why.tlsFailure)))
    }

    func originConnected(_ stream: any OriginStream) {
        state = .awaiting(stream)
        stream.begin(RequestFacts(method), framing: framing, limits: client.limits)
        setDeadline(stream, client.pool.settings.rules.firstByteTimeout)
        let outcome = stream.sendHead(bytes.span, Span(), isWhole: true)
        if case .failed = outcome { originWriteFailed(stream) }
    }

    // MARK: Events of the stream

    func originDrained(_ stream: any OriginStream) { stream.requestTaken() }

    /// The server may have answered before it closed.
    func originWriteFailed(_ stream: any OriginStream) {
        stream.expectInput()
        originReadable(stream)
        // Another attempt may be under way now, on another connection.
        if case .awaiting(let current) = state, current === stream { broke(stream) }
    }

    func originTimedOut(_ stream: any OriginStream) {
        if isLate { return finish(.failure(.timedOut)) }
        if case .reading = state { return finish(.failure(.stalled)) }
        finish(.failure(.firstByteTimedOut))
    }

    func originReadable(_ stream: any OriginStream) {
        switch stream.receive(for: self) {
        case .some:
            // A deadline that is set after the end lies one tick ahead. Bytes that keep coming
            // would move it each time.
            guard !isLate else { return finish(.failure(.timedOut)) }
            if case .reading = state { setDeadline(stream, client.settings.idleTimeout) }
            stream.resumeReading()
        case .none: break
        case .complete: complete()
        case .stopped: break
        case .broke, .refused, .violated: broke(stream)
        case .malformed(let reason): finish(.failure(.responseMalformed(reason)))
        case .tooManyInterim: finish(.failure(.tooManyInterimResponses))
        }
    }

    package func originInterim(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) -> Bool {
        true
    }

    package func originResponded(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        rest: Span<UInt8>
    ) -> Bool {
        guard case .awaiting(let stream) = state else { return false }
        if let length = head.contentLength, head.framing != .none,
            length > UInt64(client.settings.contentMax)
        {
            finish(.failure(.contentTooLarge))
            return false
        }
        let fields = HTTPResponse.fields(head.fields, bytes)
        state = .reading(stream, HTTPResponse(status: head.status, fields: fields))
        return true
    }

    package func originContent(_ piece: Span<UInt8>) {
        guard case .reading = state else { return }
        guard content.count + piece.count <= client.settings.contentMax else {
            return finish(.failure(.contentTooLarge))
        }
        piece.withUnsafeBufferPointer { content.append(contentsOf: $0) }
    }

    // MARK: The end

    private func complete() {
        guard case .reading(let stream, var response) = state else { return }
        response.content = content
        response.trailers = stream.trailers.map { HTTPResponse.fields($0) } ?? []
        state = .over
        let settings = client.settings
        let isSent = stream.unsentBytes == 0
        stream.release(
            isReusable: isSent && settings.idleMax > 0,
            idleTime: settings.poolTime,
            idleMax: settings.idleMax
        )
        ended(.success(response))
    }

    /// The server may close an idle connection at the moment it is taken. The request is sent once
    /// more where that does no harm (RFC 9112 §9.3.1, RFC 9110 §9.2.2).
    private func broke(_ stream: any OriginStream) {
        let repeats = mayRepeat && stream.isReused && stream.hasReceivedNothing
        guard repeats else { return finish(.failure(.closed)) }
        mayRepeat = false
        stream.close()
        connect(reusesIdle: false)
    }

    private var isLate: Bool { client.loop.now >= end }

    private func setDeadline(_ stream: any OriginStream, _ milliseconds: UInt64) {
        let now = client.loop.now
        stream.setDeadline(milliseconds: min(milliseconds, end > now ? end - now : 0))
    }

    private func finish(_ result: Result<HTTPResponse, CallFault>) {
        if case .over = state { return }
        leave()
        ended(result)
    }

    private func leave() {
        switch state {
        case .connecting(let dial): dial.cancel()
        case .awaiting(let stream), .reading(let stream, _):
            // RFC 9112 §8: an incomplete request must not look complete.
            if stream.unsentBytes > 0 { stream.reset() } else { stream.close() }
        case .begun, .over: break
        }
        state = .over
    }
}

/// Why a call has no response.
package enum CallFault: Error, Equatable {
    /// The target is not in origin-form.
    case targetMalformed
    /// No server takes a connection. With the reason of a failed TLS handshake.
    case unreachable(OriginFailure, TLSFailure? = nil)
    /// The connection ended or broke before the response was complete.
    case closed
    /// The response did not begin in time.
    case firstByteTimedOut
    /// The response began and did not continue in time.
    case stalled
    /// The time for the call is over.
    case timedOut
    case responseMalformed(Malformed.Reason)
    case tooManyInterimResponses
    /// The content exceeds the limit.
    case contentTooLarge
}
