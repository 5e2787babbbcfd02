import Synchronization

/// Whether a server is passed over because it failed lately; shared by all event loops.
///
/// A server that refuses a connect, does not answer one in time, or does not begin a response in
/// time while it answers no other request either, is paused: requests go to other servers while
/// there are any. When the pause is over, one trial is made at a time: a connect without a request
/// where the connect had failed, and one request where the response had not come.
package final class ServerHealth: Sendable {
    /// What a server did not do.
    package enum Fault: Sendable {
        /// It refused the connect, or can't be reached.
        case refused
        /// It did not answer a connect in time.
        case connectTimedOut
        /// It did not begin a response in time.
        case silent
    }

    /// What a server is good for now.
    enum Standing {
        case fit
        case paused
        /// The pause is over; a trial is due.
        case trialDue
    }

    private struct Episode {
        var fault = Fault.refused
        /// Failures one after another.
        var failures = 0
        /// When the last one was noted.
        var failedAt: UInt64 = 0
    }

    /// How long a server is passed over after a failure.
    private static let pauseMilliseconds: UInt64 = 5_000
    /// It doubles with each timeout, up to this.
    private static let pauseMillisecondsMax: UInt64 = 40_000
    /// How often a server that takes no connection is tried where no other is left.
    private static let trialMilliseconds: UInt64 = 1_000
    /// The precision of the last response's time: if all event loops wrote it for each response,
    /// they would contend for its cache line.
    private static let responseMilliseconds: UInt64 = 100

    /// When the pause is over; 0 for none. All times are milliseconds of ``EventLoop/now``.
    private let pausedUntil = Atomic<UInt64>(0)
    private let respondedAt = Atomic<UInt64>(0)
    /// When a trial was last made before its time.
    private let triedAt = Atomic<UInt64>(0)
    /// When the last pause ended before its time; 0 for never.
    private let recoveredAt = Atomic<UInt64>(0)
    private let episode = Mutex(Episode())

    package init() {}

    func standing(now: UInt64) -> Standing {
        let until = pausedUntil.load(ordering: .relaxed)
        guard until > 0 else { return .fit }
        return until > now ? .paused : .trialDue
    }

    /// Begins the trial that is due, unless another event loop has. The pause goes on meanwhile.
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

    /// What the server did wrong, as long as nothing has shown that it is well again.
    var trouble: Fault? {
        guard pausedUntil.load(ordering: .relaxed) > 0 else { return nil }
        return episode.withLock { $0.failures > 0 ? $0.fault : nil }
    }

    /// Begins a connect to a server that takes none, without a request, unless that was tried in
    /// the last second.
    func beginEarlyTrial(now: UInt64) -> Bool {
        switch trouble {
        case nil, .silent: return false
        case .refused, .connectTimedOut: break
        }
        let last = triedAt.load(ordering: .relaxed)
        guard now >= last &+ Self.trialMilliseconds else { return false }
        // One event loop of those that come here at the same time.
        return triedAt.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
    }

    /// A connect takes suspiciously long, and its time ends then.
    func suspected(until end: UInt64) {
        episode.withLock { episode in
            guard pausedUntil.load(ordering: .relaxed) < end else { return }
            if episode.failures == 0 { episode.fault = .connectTimedOut }
            pausedUntil.store(end, ordering: .relaxed)
        }
    }

    /// A connect failed, or a response did not come. What began before the last failure was noted
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
    /// only slow with this one: a client can't have it paused by asking for what takes long.
    func wasSilent(since: UInt64, now: UInt64) {
        guard respondedAt.load(ordering: .relaxed) < since else { return }
        failed(.silent, begunAt: since, now: now)
    }

    /// A connect ended well, which says nothing about responses.
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

    /// A refusal costs a request nothing, so it is tried again soon; a timeout costs time.
    private static func pause(_ episode: Episode) -> UInt64 {
        switch episode.fault {
        case .refused: return pauseMilliseconds
        case .connectTimedOut, .silent:
            let doublings = UInt64(min(max(episode.failures - 1, 0), 10))
            return min(pauseMilliseconds << doublings, pauseMillisecondsMax)
        }
    }
}
