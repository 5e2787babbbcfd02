import EventLoops
import Services
import Telemetry

/// Connects to the servers of an origin, one after another, until one takes the connection.
///
/// The dial does not wait for one slow server alone: after ``headStartMilliseconds`` it also tries
/// the next one, and the first that answers gets the request. Nothing has been sent by then, so
/// this suits every request. HAProxy and nginx wait for their connect timeout first.
final class OriginDial: StreamSearch, StreamSeeker {
    /// The time for which the dial waits for one server alone, as RFC 8305 §8 recommends.
    private static let headStartMilliseconds: UInt64 = 250
    /// Connects that run at the same time.
    private static let parallelMax = 3

    /// A reload replaces it, where the dial waits for a place.
    private var pool: OriginPool
    /// `nil` when the dial has ended.
    private var owner: (any OriginStreamOwner)?
    let flow: Int
    let group: SharingGroup
    private let affinity: UInt64
    private let preface: [UInt8]
    private let end: UInt64
    private(set) var tried: [OriginServer] = []
    private var running: [any DialedStream] = []
    private var failure = OriginFailure.originUnreachable
    /// Why the handshake with the last server failed, where it did.
    private var tlsFailure: TLSFailure?
    /// Its number among the dials that wait for a place; `nil` while it does not wait.
    private var waitNumber: UInt64?
    /// When it began to wait, monotonic nanoseconds.
    private var waitBeganAt: UInt64 = 0
    /// Nanoseconds for which it has waited.
    private(set) var waited: UInt64 = 0
    /// The end of its wait: milliseconds of ``EventLoop/now``.
    private(set) var waitsUntil = UInt64.max

    init(
        _ pool: OriginPool,
        for owner: any OriginStreamOwner,
        _ demand: OriginPool.Demand,
        preface: [UInt8]
    ) {
        self.pool = pool
        self.owner = owner
        flow = demand.flow
        group = demand.group
        affinity = demand.affinity
        self.preface = preface
        end = demand.end
    }

    var lastServer: (any OriginPeer)? { tried.last }

    private var unreached: Unreached {
        let isTLS = failure == .originTLSFailed
        return Unreached(failure: failure, server: lastServer, tlsFailure: isTLS ? tlsFailure : nil)
    }

    /// Connects to this server first, or waits for a full one.
    func begin(_ first: OriginPool.Choice) -> OriginPool.Connecting {
        switch tryServers(first) {
        case .connected(let stream):
            guard let owner = finish() else { return .failed(unreached) }
            stream.take(for: owner, flow: flow)
            return .connected(stream)
        case .waiting: return .dialing(self)
        case .failed:
            _ = finish()
            return .failed(unreached)
        }
    }

    /// Ends the dial. Its owner no longer needs a connection.
    func cancel() {
        owner = nil
        if let waitNumber { pool.leave(waitNumber, flow: flow) }
        endWait()
        abandonRunning()
    }

    // MARK: Events of streams

    /// A connect succeeded.
    func connected(_ stream: any DialedStream) {
        stream.servedBy.settings.state.health.connected(now: pool.loop.now)
        running.removeAll { $0 === stream }
        guard let owner = finish() else { return stream.close() }
        stream.take(for: owner, flow: flow)
        owner.originConnected(stream)
    }

    func failed(_ stream: any DialedStream, _ error: SocketError) {
        running.removeAll { $0 === stream }
        stream.noteFailure(error)
        noteFault(of: stream, error)
        stream.close()
        goOn()
    }

    private func noteFault(of stream: any DialedStream, _ error: SocketError) {
        failure = Self.failure(of: error)
        if let found = stream.handshakeFault {
            failure = .originTLSFailed
            tlsFailure = found
        }
    }

    /// A connect has not ended by its deadline: the end of its head start, of its time, or of the
    /// request's time. The last says nothing about the server, so the connect goes on.
    func deadlinePassed(_ stream: any DialedStream) {
        let now = pool.loop.now
        let connectEnd = stream.begunAt &+ pool.settings.rules.connectTimeout
        guard now < connectEnd else { return failed(stream, stream.lateness) }
        guard now < end else {
            noteFault(of: stream, stream.lateness)
            finish()?.originUnreachable(unreached)
            return
        }
        let last = min(end, connectEnd)
        stream.setDeadline(milliseconds: last - now)
        guard running.count < Self.parallelMax, case .server(let next) = choose(onlyFit: true)
        else { return }
        stream.servedBy.settings.state.health.suspected(until: last)
        tell(tryServers(.server(next)))
    }

    // MARK: Attempts

    private enum Step {
        case connected(any DialedStream)
        case waiting
        case failed
    }

    /// Tries servers, beginning with this one, until a connect runs or has succeeded, or the dial
    /// can wait for one.
    private func tryServers(_ first: OriginPool.Choice) -> Step {
        var next = first
        trying: while pool.loop.now < end {
            switch next {
            case .nobody:
                if tried.isEmpty { failure = .originDown }
                break trying
            case .full(let servers):
                // A connect that runs may still succeed.
                guard running.isEmpty else { break trying }
                switch pool.wait(self, for: servers) {
                case .waits: return .waiting
                case .room: break
                case .full:
                    pool.host.count(.originQueueFull)
                    failure = .originQueueFull
                    break trying
                }
            case .server(let server):
                guard server.reserve() else { break }
                switch attempt(server) {
                case .connected(let stream): return .connected(stream)
                case .waiting: return .waiting
                case .failed: if failure == .outOfDescriptors { break trying }
                }
            }
            next = choose(onlyFit: !running.isEmpty)
        }
        return running.isEmpty ? .failed : .waiting
    }

    /// Looks for a stream at a server at which a place is reserved.
    private func attempt(_ server: OriginServer) -> Step {
        tried.append(server)
        do throws(SocketError) {
            let stream = try pool.open(server, for: self, preface)
            if stream.isConnected { return .connected(stream) }
            running.append(stream)
            let left = end > pool.loop.now ? end - pool.loop.now : 0
            let time = min(pool.settings.rules.connectTimeout, left)
            stream.setDeadline(milliseconds: min(time, Self.headStartMilliseconds))
            return .waiting
        } catch {
            failure = Self.failure(of: error)
            guard error != .noStream else { return .failed }
            pool.host.count(.originConnectFailures)
            server.connectFailed(error, begunAt: pool.loop.now, on: pool.loop)
            return .failed
        }
    }

    private func choose(onlyFit: Bool) -> OriginPool.Choice {
        pool.choose(after: tried, affinity: affinity, reusesIdle: false, onlyFit: onlyFit)
    }

    /// One connect has ended: tries the remaining servers.
    private func goOn() {
        guard owner != nil else { return }
        tell(tryServers(choose(onlyFit: !running.isEmpty)))
    }

    private func tell(_ step: Step) {
        switch step {
        case .connected(let stream): connected(stream)
        case .waiting: break
        case .failed: finish()?.originUnreachable(unreached)
        }
    }

    private static func failure(of error: SocketError) -> OriginFailure {
        if error.isShortage { return .outOfDescriptors }
        if error == .noHTTP2 { return .originNotHTTP2 }
        if error == .noStream { return .originQueueTimeout }
        return error.isTimeout ? .originTimeout : .originUnreachable
    }

    private func finish() -> (any OriginStreamOwner)? {
        defer { owner = nil }
        abandonRunning()
        return owner
    }

    /// A connect that takes suspiciously long continues as a trial: its end decides whether the
    /// server is skipped.
    private func abandonRunning() {
        let now = pool.loop.now
        for stream in running {
            let last = stream.begunAt &+ pool.settings.rules.connectTimeout
            if now >= stream.begunAt &+ Self.headStartMilliseconds, now < last {
                // The server gets its own connect time, not the head start of the next server or
                // the rest of the request's time.
                stream.setDeadline(milliseconds: last - now)
                stream.becomeTrial()
            } else {
                stream.close()
            }
        }
        running = []
    }
}

// Waiting for a place.
extension OriginDial {
    /// The dial waits under this number, in this pool.
    func waits(as number: UInt64, in pool: OriginPool) {
        self.pool = pool
        waitNumber = number
        guard waitBeganAt == 0 else { return }
        pool.host.count(.originQueued)
        waitBeganAt = MonotonicClock.nanoseconds
        // Waiting once more does not restart the time.
        guard waitsUntil == .max else { return }
        waitsUntil = min(pool.loop.now &+ pool.settings.rules.queue.timeout, end)
    }

    private func endWait() {
        waitNumber = nil
        guard waitBeganAt > 0 else { return }
        let time = MonotonicClock.nanoseconds &- waitBeganAt
        waitBeganAt = 0
        waited &+= time
        pool.host.dequeued(after: time)
    }

    /// The dial has a place at a server.
    func granted(_ server: OriginServer) {
        endWait()
        guard owner != nil, pool.loop.now < end else {
            server.freed(on: pool.loop)
            return waitedTooLong()
        }
        let step = attempt(server)
        if case .failed = step, failure != .outOfDescriptors { goOn() } else { tell(step) }
    }

    /// The dial has a connection that another request has used.
    func given(_ stream: any DialedStream) {
        endWait()
        pool.host.count(.originReuses)
        connected(stream)
    }

    /// The dial must choose again, in this pool.
    func wake(in pool: OriginPool) {
        self.pool = pool
        endWait()
        goOn()
    }

    func displaced() {
        endWait()
        pool.host.count(.originQueueFull)
        failure = .originQueueFull
        finish()?.originUnreachable(unreached)
    }

    func waitedTooLong() {
        endWait()
        pool.host.count(.originQueueTimeouts)
        failure = .originQueueTimeout
        finish()?.originUnreachable(unreached)
    }
}
