import Synchronization

/// Whether a server is skipped because it failed lately; shared by all event loops.
///
/// A server is paused in three cases: it refuses a connect, it does not answer a connect in time,
/// or it does not begin a response in time and answers no other request either. Requests then go to
/// other servers while there are any. After the pause there is one trial at a time: a connect
/// without a request where the connect had failed, and one request where the response had not come.
package final class ServerHealth: Sendable {
    /// The failure of a server.
    package enum Fault: Sendable {
        /// It refused the connect, or can't be reached.
        case refused
        /// It did not answer a connect in time.
        case connectTimedOut
        /// It did not begin a response in time.
        case silent
    }

    /// Whether a server may get requests now.
    enum Standing {
        case fit
        case paused
        /// The pause is over; a trial is due.
        case trialDue
    }

    private struct Episode {
        var fault = Fault.refused
        /// Consecutive failures.
        var failures = 0
        var failedAt: UInt64 = 0
    }

    /// The pause after a failure.
    private static let pauseMilliseconds: UInt64 = 5_000
    /// Each timeout doubles the pause, up to this.
    private static let pauseMillisecondsMax: UInt64 = 40_000
    /// The interval of trials of a server that takes no connection.
    private static let trialMilliseconds: UInt64 = 1_000
    /// The precision of the last response's time. If all event loops wrote it for each response,
    /// they would contend for its cache line.
    private static let responseMilliseconds: UInt64 = 100

    /// The end of the pause; 0 for none. All times are milliseconds of ``EventLoop/now``.
    private let pausedUntil = Atomic<UInt64>(0)
    private let respondedAt = Atomic<UInt64>(0)
    /// The time of the last early trial.
    private let triedAt = Atomic<UInt64>(0)
    /// The time at which the last pause ended early; 0 for never.
    private let recoveredAt = Atomic<UInt64>(0)
    private let episode = Mutex(Episode())

    package init() {}

    func standing(now: UInt64) -> Standing {
        let until = pausedUntil.load(ordering: .relaxed)
        guard until > 0 else { return .fit }
        return until > now ? .paused : .trialDue
    }

    /// Begins the trial that is due, unless another event loop has begun it. The pause continues
    /// meanwhile.
    ///
    /// - Returns: what is to be tried again.
    func beginTrial(now: UInt64) -> Fault? {
        episode.withLock { episode in
            guard case .trialDue = standing(now: now) else { return nil }
            pausedUntil.store(now &+ Self.pause(episode), ordering: .relaxed)
            return episode.fault
        }
    }

    /// Whether connects to the server time out: a request for it would wait in vain.
    var answersNoConnect: Bool { trouble == .connectTimedOut }

    /// The fault of the server, until something shows that it is well again.
    var trouble: Fault? {
        guard pausedUntil.load(ordering: .relaxed) > 0 else { return nil }
        return episode.withLock { $0.failures > 0 ? $0.fault : nil }
    }

    /// Begins a connect without a request to a server that takes none, unless there was one in the
    /// last second.
    func beginEarlyTrial(now: UInt64) -> Bool {
        switch trouble {
        case nil, .silent: return false
        case .refused, .connectTimedOut: break
        }
        let last = triedAt.load(ordering: .relaxed)
        guard now >= last &+ Self.trialMilliseconds else { return false }
        // Only one of the event loops that come here at the same time begins it.
        return triedAt.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
    }

    /// A connect takes suspiciously long; its time ends at `end`.
    func suspected(until end: UInt64) {
        episode.withLock { episode in
            guard pausedUntil.load(ordering: .relaxed) < end else { return }
            if episode.failures == 0 { episode.fault = .connectTimedOut }
            pausedUntil.store(end, ordering: .relaxed)
        }
    }

    /// A connect failed, or a response did not come. An attempt that began before the last failure
    /// belongs to that failure.
    func failed(_ fault: Fault, begunAt: UInt64, now: UInt64) {
        episode.withLock { episode in
            guard episode.failures == 0 || begunAt > episode.failedAt else { return }
            episode.fault = fault
            episode.failures += 1
            episode.failedAt = now
            pausedUntil.store(now &+ Self.pause(episode), ordering: .relaxed)
        }
    }

    /// A response to a request did not begin in time. A server that has answered others since is
    /// slow only with this one. So a client can't pause a server by asking for a slow answer.
    func wasSilent(since: UInt64, now: UInt64) {
        guard respondedAt.load(ordering: .relaxed) < since else { return }
        failed(.silent, begunAt: since, now: now)
    }

    /// A connect succeeded, which says nothing about responses.
    func connected(now: UInt64) {
        guard pausedUntil.load(ordering: .relaxed) > 0 else { return }
        episode.withLock { episode in
            if episode.fault != .silent { end(&episode, now) }
        }
    }

    /// A response began.
    func responded(now: UInt64) {
        if respondedAt.load(ordering: .relaxed) &+ Self.responseMilliseconds <= now {
            respondedAt.store(now, ordering: .relaxed)
        }
        guard pausedUntil.load(ordering: .relaxed) > 0 else { return }
        episode.withLock { end(&$0, now) }
    }

    /// When the last pause after a failure ended; 0 for never.
    var recovered: UInt64 { recoveredAt.load(ordering: .relaxed) }

    private func end(_ episode: inout Episode, _ now: UInt64) {
        if episode.failures > 0 { recoveredAt.store(now, ordering: .relaxed) }
        episode = Episode()
        pausedUntil.store(0, ordering: .relaxed)
    }

    /// A refused connect costs a request no time, so the server is tried again soon. A timeout
    /// costs time.
    private static func pause(_ episode: Episode) -> UInt64 {
        switch episode.fault {
        case .refused: return pauseMilliseconds
        case .connectTimedOut, .silent:
            let doublings = UInt64(min(max(episode.failures - 1, 0), 10))
            return min(pauseMilliseconds << doublings, pauseMillisecondsMax)
        }
    }
}
