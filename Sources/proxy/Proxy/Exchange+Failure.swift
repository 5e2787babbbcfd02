import ClientStreams
import HTTPWire
import Lanes
import Origins
import Telemetry
import Verification

/// What went wrong on the origin's side before a response began.
enum OriginFailure: String {
    case originUnreachable = "origin-unreachable"
    /// No descriptor or memory for a connection: the gateway's own trouble, and no server's.
    case outOfDescriptors = "out-of-descriptors"
    case originClosed = "origin-closed"
    case originTimeout = "origin-timeout"
    case responseMalformed = "response-malformed"
    case tooManyInterimResponses = "too-many-interim-responses"

    /// RFC 9110 §15.6.3, §15.6.4, §15.6.5.
    var status: Int {
        switch self {
        case .originTimeout: 504
        case .outOfDescriptors: 503
        case .originUnreachable, .originClosed, .responseMalformed, .tooManyInterimResponses: 502
        }
    }
}

extension Exchange {
    /// The connection to the origin is of no more use.
    func originBroke(_ connection: OriginStream) {
        guard origin === connection else { return }
        proxy.tally.add(.originFailures)
        guard !hasResponse else {
            problem = OriginFailure.originClosed.rawValue
            return cutOff()
        }
        // An idle connection may be closed by the origin in the moment it is taken. The request may
        // be sent once more if that does no harm and all of it is still here (RFC 9112 §9.3.1,
        // RFC 9110 §9.2.2); the verdict is not made again.
        let isWhole = if case .abandoned = upload { false } else { true }
        guard connection.hasReceivedNothing, isWhole, mayRepeat(on: connection) else {
            return fail(.originClosed)
        }
        retry()
    }

    /// Whether a request that has reached a server may be sent once more.
    ///
    /// One whose assertion was used only when its method is safe: the server may have executed it
    /// before its connection broke, and an assertion stands for one execution.
    func mayRepeat(on connection: OriginStream) -> Bool {
        let isProven = isJudged && ruling.standing == .complete
        let isHarmless = isProven ? method.isSafe : method.isIdempotent
        return connection.isReused && isHarmless && !hasRetried && !hasStreamed
    }

    private func retry() {
        hasRetried = true
        proxy.tally.add(.retries)
        releaseOrigin(reusable: false)
        wasCutShort = false
        switch upload {
        case .streaming: upload = .waiting
        case .replaying: upload = .replaying(offset: 0)
        case .done: if let held, held.count > 0 { upload = .replaying(offset: 0) }
        case .waiting, .holding, .collecting, .abandoned: break
        }
        forward()
    }

    /// Octets could not be sent. The origin may have answered and closed before it read them.
    func originWriteFailed(_ connection: OriginStream) {
        guard origin === connection else { return }
        if connection.isReused, !hasStreamed, !hasRetried, connection.sentNothing {
            // Not one octet of the request was taken: any method may be sent again.
            return retry()
        }
        if case .streaming = upload { upload = .abandoned }
        connection.expectInput()
        originReadable(connection)
        guard isUnderWay, origin === connection, !hasResponse else { return }
        originBroke(connection)
    }

    func originTimedOut(_ connection: OriginStream) {
        guard origin === connection, let client else { return }
        if hasResponse {
            // The client is what stands still; its own deadline is running.
            if client.unsentBytes > 0 {
                return connection.setDeadline(milliseconds: settings.timeouts.responseIdle)
            }
            proxy.tally.add(.originTimeouts)
            problem = OriginFailure.originTimeout.rawValue
            return cutOff()
        }
        proxy.tally.add(.originTimeouts)
        fail(.originTimeout)
    }

    /// Answers for the origin.
    func fail(_ failure: OriginFailure) {
        if problem.isEmpty { problem = failure.rawValue }
        releaseOrigin(reusable: false)
        answer(.error(status: failure.status, reason: failure.rawValue))
    }

    /// Answers locally and ends the exchange. What the client still sends is read away for a
    /// bounded time, or the connection ends.
    func answer(_ answer: LocalAnswer) {
        guard let client else { return }
        status = answer.status
        if problem.isEmpty { problem = answer.reason }
        switch upload {
        case .done: break
        // A request that is refused by its head alone need not cost its connection.
        case .waiting: upload = client.dropContent() ? .done : .abandoned
        case .holding, .collecting, .streaming, .replaying, .abandoned: upload = .abandoned
        }
        releaseOrigin(reusable: false)
        answeredBytes = method == .head ? 0 : UInt64(answer.body.utf8.count)
        client.respond(
            status: answer.status,
            fields: answer.allFields,
            content: Array(answer.body.utf8)
        )
        finish()
    }
}
