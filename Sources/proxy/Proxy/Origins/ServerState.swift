package import HTTPWire
import Synchronization

/// The state of a server that all event loops share, also after a reload. All times are
/// milliseconds of ``EventLoop/now``, except those in notes, which are of the wall clock.
package final class ServerState: Sendable {
    /// Distinguishes states in this process.
    let number = ServerState.numbers.wrappingAdd(1, ordering: .relaxed).newValue
    private static let numbers = Atomic<Int>(0)

    package let health = ServerHealth()
    /// The lower bits count the requests under way, the bits above them those that have ended. Both
    /// change together when a request ends, with one write to memory that event loops share.
    private let requests = Atomic<UInt64>(0)
    /// Nanoseconds from the last head byte of a request to the first of its response, summed up.
    private let nanoseconds = Atomic<UInt64>(0)
    /// Consecutive failed requests.
    private let failuresInRow = Atomic<Int>(0)
    /// When the server's ejection ends; 0 for none.
    private let ejectedUntil = Atomic<UInt64>(0)
    /// When the server came back for another reason; 0 for never.
    private let returnedAt = Atomic<UInt64>(0)
    /// Why it gets no request: ``Closure``.
    private let closures = Atomic<UInt8>(0)
    private let notes = Mutex<Notes>(Notes())

    /// The bits for requests under way: they can count more requests than there are descriptors.
    private static let activeBits: UInt64 = 24
    private static let activeMask: UInt64 = (1 << activeBits) - 1

    /// Why a server gets no request, whatever the state of the others.
    enum Closure: UInt8 {
        /// Its checks fail.
        case unchecked = 1
        /// An operator drains it.
        case drained = 2
    }

    /// Values that change seldom.
    private struct Notes {
        var failures: UInt64 = 0
        var ejections: UInt64 = 0
        /// Consecutive ejections, each longer than the one before.
        var level = 0
        var lastFailure: ServerNote<ServerFailure>?
        var lastCheck: ServerNote<CheckResult>?
        var checks = CheckStreak()
    }

    package init() {}

    // MARK: Requests

    /// Requests under way at the server, and connects for a request.
    package var active: Int { Int(requests.load(ordering: .relaxed) & Self.activeMask) }

    package var served: UInt64 { requests.load(ordering: .relaxed) >> Self.activeBits }

    /// A connect for a request begins, or a request takes an idle connection.
    func began() { requests.wrappingAdd(1, ordering: .relaxed) }

    /// The sum of the times that requests waited for the first bytes of their responses.
    package var waited: Duration {
        .nanoseconds(Int64(clamping: nanoseconds.load(ordering: .relaxed)))
    }

    /// A connect or a request has ended.
    ///
    /// - hadRequest: whether a request was sent to the server meanwhile.
    /// - waited: nanoseconds from the request's last head byte to the response's first; 0 where
    ///   there was none.
    func ended(hadRequest: Bool, waited: UInt64 = 0) {
        // One fewer under way, one more ended.
        let change: UInt64 = hadRequest ? (1 << Self.activeBits) &- 1 : 0 &- 1
        requests.wrappingAdd(change, ordering: .relaxed)
        // The event loop has this memory for itself at this moment.
        if waited > 0 { nanoseconds.wrappingAdd(waited, ordering: .relaxed) }
    }

    // MARK: Failures

    func succeeded() {
        // Event loops contend for memory that is written, not for memory that is only read.
        guard failuresInRow.load(ordering: .relaxed) > 0 else { return }
        failuresInRow.store(0, ordering: .relaxed)
    }

    func note(_ failure: ServerFailure, wall: Int64) {
        notes.withLock { notes in
            notes.failures += 1
            notes.lastFailure = ServerNote(what: failure, at: wall)
        }
    }

    /// A request failed.
    ///
    /// - Returns: the number of consecutive failures.
    func requestFailed() -> Int { failuresInRow.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Ejects the server for a while, each time longer.
    func eject(_ rule: Ejection, now: UInt64) {
        notes.withLock { notes in
            let last = ejectedUntil.load(ordering: .relaxed)
            // After the longest time without an ejection the first time applies again.
            if now > last &+ rule.timeMax { notes.level = 0 }
            let time = min(rule.time << UInt64(min(notes.level, 20)), rule.timeMax)
            notes.level += 1
            notes.ejections += 1
            ejectedUntil.store(now &+ time, ordering: .relaxed)
        }
        failuresInRow.store(0, ordering: .relaxed)
    }

    func isEjected(now: UInt64) -> Bool { ejectedUntil.load(ordering: .relaxed) > now }

    // MARK: Standing

    /// Whether the server may get requests now.
    func standing(now: UInt64) -> ServerHealth.Standing {
        isEjected(now: now) ? .paused : health.standing(now: now)
    }

    /// Whether it gets no request at all.
    var isClosed: Bool { closures.load(ordering: .relaxed) != 0 }

    package var isDrained: Bool {
        closures.load(ordering: .relaxed) & Closure.drained.rawValue != 0
    }

    /// Drains it: it gets no new request, and requests under way end by themselves.
    package func drain() { closures.bitwiseOr(Closure.drained.rawValue, ordering: .relaxed) }

    package func undrain(now: UInt64) { open(.drained, now: now) }

    private func open(_ closure: Closure, now: UInt64) {
        closures.bitwiseAnd(~closure.rawValue, ordering: .relaxed)
        returned(now: now)
    }

    /// The server may get requests again.
    func returned(now: UInt64) { returnedAt.store(now, ordering: .relaxed) }

    /// The part of its weight that it has after it came back, in 256ths. When `slowStart` is over,
    /// it has all of it.
    func share(slowStart: UInt64, now: UInt64) -> Int {
        guard slowStart > 0 else { return 256 }
        let ejected = max(ejectedUntil.load(ordering: .relaxed), health.recovered)
        let since = max(returnedAt.load(ordering: .relaxed), ejected)
        guard since > 0, now < since &+ slowStart else { return 256 }
        // A server that is used as the last resort has not come back yet.
        guard now > since else { return 1 }
        return max(Int((now - since) &* 256 / slowStart), 1)
    }

    /// Its state in a word.
    package func condition(now: UInt64) -> ServerCondition {
        let bits = closures.load(ordering: .relaxed)
        if bits & Closure.drained.rawValue != 0 { return .drained }
        if bits & Closure.unchecked.rawValue != 0 { return .down }
        if isEjected(now: now) { return .ejected }
        return switch health.trouble {
        case .none: .up
        case .refused, .connectTimedOut: .unreachable
        case .silent: .silent
        }
    }

    // MARK: Checks

    /// A check has ended.
    ///
    /// - Returns: whether the server may be used, where that has changed.
    func checked(
        _ result: CheckResult,
        _ check: ServerCheck,
        now: UInt64,
        wall: Int64
    ) -> CheckStreak.Change? {
        let change = notes.withLock { notes in
            notes.lastCheck = ServerNote(what: result, at: wall)
            return notes.checks.took(result, check)
        }
        switch change {
        case .up: open(.unchecked, now: now)
        case .down: closures.bitwiseOr(Closure.unchecked.rawValue, ordering: .relaxed)
        case nil: break
        }
        return change
    }

    /// It is no longer checked.
    func forgetChecks(now: UInt64) {
        let wasDown = notes.withLock { notes in
            defer { notes.checks = CheckStreak() }
            return notes.checks.isDown
        }
        if wasDown { open(.unchecked, now: now) }
    }

    // MARK: Notes

    package var failures: UInt64 { notes.withLock { $0.failures } }
    package var ejections: UInt64 { notes.withLock { $0.ejections } }
    package var lastFailure: ServerNote<ServerFailure>? { notes.withLock { $0.lastFailure } }
    package var lastCheck: ServerNote<CheckResult>? { notes.withLock { $0.lastCheck } }
}

/// A note about a server, with its time.
package struct ServerNote<What: Sendable>: Sendable {
    package let what: What
    /// Milliseconds since 1970.
    package let at: Int64
}

/// The failure of a server. The raw value is shown to operators: add, do not rename.
package enum ServerFailure: Sendable, Equatable {
    case refused
    case connectTimeout
    /// It took the connection, and the TLS handshake failed.
    case handshake
    /// It took the connection, and does not speak HTTP/2.
    case noHTTP2
    /// It has exceeded a limit of an HTTP/2 connection.
    case exceeded(HTTP2Excess)
    /// It did not begin a response in time.
    case timeout
    /// It ended the connection before its response was complete.
    case closed
    case malformed
    /// A status that counts as a failure.
    case status(Int)

    package var text: String {
        switch self {
        case .refused: "refused"
        case .connectTimeout: "connect-timeout"
        case .handshake: "tls-failed"
        case .noHTTP2: "no-http2"
        case .exceeded(let excess): excess.rawValue
        case .timeout: "timeout"
        case .closed: "closed"
        case .malformed: "malformed"
        case .status(let status): "status-\(status)"
        }
    }
}

/// The state of a server. The raw value is shown to operators: add, do not rename.
package enum ServerCondition: String, Sendable {
    /// No fault is known.
    case up
    /// It takes no connection, and is skipped while another one does.
    case unreachable
    /// It takes requests and answers none in time, and is skipped while another one does.
    case silent
    /// Consecutive requests failed; it is skipped for a while.
    case ejected
    /// Its checks fail; it gets no request.
    case down
    /// An operator drains it; it gets no request.
    case drained

    /// Whether it can't serve because of a failed connect or check. A client can't cause these.
    package var isOut: Bool {
        switch self {
        case .up, .silent, .ejected: false
        case .unreachable, .down, .drained: true
        }
    }
}
