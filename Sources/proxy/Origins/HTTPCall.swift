package import HTTPWire
import Lanes

/// A request of the gateway's own under way.
package final class HTTPCall: OriginStreamOwner {
    private enum State {
        /// Leaves to `connecting`, `awaiting`, `over`.
        case begun
        /// Leaves to `awaiting`, `over`.
        case connecting(OriginDial)
        /// Leaves to `reading`, `connecting`, `over`.
        case awaiting(OriginStream)
        /// Leaves to `over`.
        case reading(OriginStream, HTTPResponse)
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

    init(_ client: HTTPClient, ended: @escaping (Result<HTTPResponse, CallFault>) -> Void) {
        self.client = client
        self.ended = ended
        let (end, overflows) = client.lane.now.addingReportingOverflow(client.settings.totalTimeout)
        self.end = overflows ? .max : end
        mayRepeat = client.settings.idleMax > 0
    }

    func begin(_ request: HTTPRequest) {
        guard let bytes = request.bytes(closes: client.settings.idleMax == 0) else {
            return finish(.failure(.targetMalformed))
        }
        self.bytes = bytes
        method = request.verb.method
        mayRepeat = mayRepeat && method.isIdempotent
        connect(reusesIdle: true)
    }

    /// Ends the call; nothing is told.
    package func cancel() {
        client.lane.preconditionOnQueue()
        leave()
    }

    // MARK: Connecting

    private func connect(reusesIdle: Bool) {
        state = .begun
        switch client.pool.connect(for: self, flow: 0, reusesIdle: reusesIdle, by: end) {
        case .connected(let stream): originConnected(stream)
        case .dialing(let dial): state = .connecting(dial)
        case .failed(let fault, let server): originUnreachable(fault, server)
        }
    }

    package func originUnreachable(_ fault: DialFault, _ server: OriginServer?) {
        finish(.failure(isLate ? .timedOut : .unreachable(fault)))
    }

    package func originConnected(_ stream: OriginStream) {
        state = .awaiting(stream)
        stream.begin(method, asksUpgrade: false, framing: .none, limits: client.limits)
        setDeadline(stream, client.pool.settings.firstByteTimeout)
        if case .failed = stream.write(bytes.span) { originWriteFailed(stream) }
    }

    // MARK: Events of the stream

    package func originDrained(_ stream: OriginStream) {}

    /// The server may have answered before it closed.
    package func originWriteFailed(_ stream: OriginStream) {
        stream.expectInput()
        originReadable(stream)
        // Another attempt may be under way by now, on another connection.
        if case .awaiting(let current) = state, current === stream { broke(stream) }
    }

    package func originTimedOut(_ stream: OriginStream) {
        if isLate { return finish(.failure(.timedOut)) }
        if case .reading = state { return finish(.failure(.stalled)) }
        finish(.failure(.firstByteTimedOut))
    }

    package func originReadable(_ stream: OriginStream) {
        switch stream.receive(for: self) {
        case .some:
            // A deadline that is set after the end is one tick ahead. Bytes that keep coming would
            // move it on each time.
            guard !isLate else { return finish(.failure(.timedOut)) }
            if case .reading = state { setDeadline(stream, client.settings.idleTimeout) }
            stream.resumeReading()
        case .none: break
        case .complete: complete()
        case .stopped: break
        case .broke: broke(stream)
        case .malformed(let reason): finish(.failure(.responseMalformed(reason)))
        case .tooManyInterim: finish(.failure(.tooManyInterimResponses))
        }
    }

    package func originInterim(_ head: borrowing ResponseHead, _ octets: Span<UInt8>) -> Bool {
        true
    }

    package func originResponded(
        _ head: borrowing ResponseHead,
        _ octets: Span<UInt8>,
        rest: Span<UInt8>
    ) -> Bool {
        guard case .awaiting(let stream) = state else { return false }
        if let length = head.contentLength, head.framing != .none,
            length > UInt64(client.settings.contentMax)
        {
            finish(.failure(.contentTooLarge))
            return false
        }
        func text(_ range: Range<Int>) -> String {
            octets.extracting(range).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        }
        let fields = head.fields.fields.map {
            HTTPResponse.Field(name: text($0.name), value: text($0.value))
        }
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

    /// An idle connection may be closed by the server in the moment it is taken: the request is
    /// sent once more where that does no harm (RFC 9112 §9.3.1, RFC 9110 §9.2.2).
    private func broke(_ stream: OriginStream) {
        let repeats = mayRepeat && stream.isReused && stream.hasReceivedNothing
        guard repeats else { return finish(.failure(.closed)) }
        mayRepeat = false
        stream.close()
        connect(reusesIdle: false)
    }

    private var isLate: Bool { client.lane.now >= end }

    private func setDeadline(_ stream: OriginStream, _ milliseconds: UInt64) {
        let now = client.lane.now
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
