import EventLoops
import HTTPWire
import Telemetry

// Endings.
extension HTTP2Connection {
    /// The client has sent its end. Complete requests are still answered.
    func inputEnded() {
        input = .over
        for stream in streams where !stream.channel.isInputEnded { stream.closed() }
        // A response that is complete may wait for this turn's write.
        if session.openCount == 0 { close() }
    }

    /// The connection is broken. Content that was verified as a whole is delivered as a whole.
    func inputFailed() {
        input = .over
        for stream in streams where stream.owner?.clientBroke() == true { stream.closed() }
        if !hasRequests { close() }
    }

    var hasRequests: Bool { streams.contains { $0.owner != nil } }

    /// The gateway ends, and tells the client twice: first that it should send no more, and, when
    /// what was on its way has come, which request was the last (RFC 9113 §6.8).
    func drain() {
        guard case .serving = phase, !isDrainAnnounced else { return }
        isDrainAnnounced = true
        session.announceEnd()
        switch deadline.awaited {
        // The wait for late requests begins after them.
        case .output, .pause: break
        case .nothing, .firstRequest, .restOfHead, .request, .lateRequests, .end:
            allow(.lateRequests, milliseconds: host.settings.timeouts.drainIdle)
        }
        schedule()
    }

    /// The time to end by itself is over.
    func abort() {
        guard case .serving = phase else { return unsentBytes > 0 ? reset() : close() }
        let isUnderWay = session.openCount > 0
        closeStreams(.drained)
        if isUnderWay { reset() } else { close() }
    }

    /// Sends the remaining bytes, shuts down the output, then reads and discards further input.
    func end() {
        guard case .serving = phase, !isClosed else { return }
        closeStreams()
        guard !isClosed else { return }
        send()
        guard case .serving = phase, !isClosed else { return }
        phase = .lingering(host.lingering)
        if unsentBytes == 0 { finishLingering() } else { watchOutput() }
    }

    func finishLingering() {
        shutDownOutput()
        guard unsentBytes == 0 else { return watchOutput() }
        // The client's time begins when it can have all of the responses.
        let lingering = host.lingering
        phase = .lingering(lingering)
        allow(.end, milliseconds: lingering.wait(now: loop.now))
        resumeReading()
    }

    func drainInput() {
        guard unsentBytes == 0, case .lingering(var lingering) = phase else { return }
        switch read() {
        case .bytes(let bytes):
            guard lingering.discard(bytes.count) else { return close() }
            phase = .lingering(lingering)
            allow(.end, milliseconds: lingering.wait(now: loop.now))
            resumeReading()
        case .wouldBlock: return
        case .ended, .failed: return close()
        }
    }
}

// Deadlines of the connection itself.
extension HTTP2Connection {
    func allow(_ what: Awaited, milliseconds: UInt64) {
        deadline.allow(what, milliseconds: milliseconds, on: self)
    }

    func ownDeadlinePassed() {
        let what = deadline.awaited
        deadline.awaited = .nothing
        switch what {
        case .nothing: break
        case .end: close()
        case .restOfHead:
            host.tally.add(.clientTimeouts)
            session.terminate(.enhanceYourCalm)
            end()
        case .firstRequest, .request, .lateRequests: session.sayGoAway()
        case .output: outputTimedOut()
        case .pause:
            if input == .paused { input = .reading }
            resumeReading()
        }
    }

    func watchOutput() {
        untakenAtDeadline = UInt32(clamping: untakenBytes)
        allow(.output, milliseconds: host.settings.timeouts.responseIdle)
    }

    private func outputTimedOut() {
        let taken = UInt64(max(Int(untakenAtDeadline) - untakenBytes, 0))
        guard host.settings.timeouts.isTooLittle(taken: taken) else { return watchOutput() }
        host.tally.add(.clientTimeouts)
        closeStreams(.tooSlow)
        reset()
    }

    /// The address is over a limit: the connection is not read for a while.
    func pause() {
        guard input != .over else { return }
        input = .paused
        if unsentBytes == 0 { allow(.pause, milliseconds: Self.pauseMilliseconds) }
    }
}
