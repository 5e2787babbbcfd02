import EventLoops
import HTTPWire

// Deadlines of the connection itself.
extension HTTP2Connection {
    func allow(_ what: Awaited, milliseconds: UInt64) {
        awaited = what
        let at = loop.now &+ milliseconds
        deadline = at
        arm(at)
    }

    /// Makes ``deadlinePassed()`` run at this time at the latest.
    func arm(_ at: UInt64) {
        if let armedAt, armedAt <= at { return }
        armedAt = at
        setDeadline(milliseconds: at - min(at, loop.now))
    }

    func ownDeadlinePassed() {
        let what = awaited
        awaited = .nothing
        switch what {
        case .nothing: break
        case .end: close()
        case .restOfHead:
            host.clientWasTooSlow()
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
        host.clientWasTooSlow()
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
