import Synchronization

/// Whether a server is passed over because it failed lately; shared by all lanes.
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
    /// The precision of the last response's time: if all lanes wrote it for each response, they
    /// would contend for its cache line.
    private static let responseMilliseconds: UInt64 = 100

    /// When the pause is over; 0 for none. All times are milliseconds of ``Lane/now``.
    private let pausedUntil = Atomic<UInt64>(0)
    private let respondedAt = Atomic<UInt64>(0)
    private let episode = Mutex(Episode())

    package init() {}

    func standing(now: UInt64) -> Standing {
        let until = pausedUntil.load(ordering: .relaxed)
        guard until > 0 else { return .fit }
        return until > now ? .paused : .trialDue
    }

    /// Begins the trial that is due, unless another lane has. The pause goes on meanwhile.
    ///
    /// - Returns: what is to be tried again.
    func beginTrial(now: UInt64) -> Fault? {
        episode.withLock { episode in
            guard case .trialDue = standing(now: now) else { return nil }
            pausedUntil.store(now &+ Self.pause(episode), ordering: .relaxed)
            return episode.fault
        }
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
    /// only slow with this one: nobody can have it paused by asking for what takes long.
    func wasSilent(since: UInt64, now: UInt64) {
        guard respondedAt.load(ordering: .relaxed) < since else { return }
        failed(.silent, begunAt: since, now: now)
    }

    /// A connect ended well, which says nothing about responses.
    func connected() {
        guard pausedUntil.load(ordering: .relaxed) > 0 else { return }
        episode.withLock { episode in
            if episode.fault != .silent { end(&episode) }
        }
    }

    /// A response began.
    func responded(now: UInt64) {
        if respondedAt.load(ordering: .relaxed) &+ Self.responseMilliseconds <= now {
            respondedAt.store(now, ordering: .relaxed)
        }
        guard pausedUntil.load(ordering: .relaxed) > 0 else { return }
        episode.withLock { end(&$0) }
    }

    private func end(_ episode: inout Episode) {
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
