import Lanes

/// Connects to one server of an origin after another until one takes the connection.
///
/// A server that does not answer soon is not waited for alone: after ``headStartMilliseconds`` the
/// next one is tried beside it, and the first that answers gets the request. Nothing was sent by
/// then, so this suits every request. HAProxy and nginx wait for their connect timeout first.
package final class OriginDial {
    /// How long a server is waited for alone, as RFC 8305 §8 recommends.
    private static let headStartMilliseconds: UInt64 = 250
    /// Connects that run at a time.
    private static let parallelMax = 3

    private let pool: OriginPool
    /// `nil` when the dial has ended.
    private var owner: (any OriginStreamOwner)?
    private let flow: Int
    private let affinity: UInt64
    private let preface: [UInt8]
    private let end: UInt64
    private var tried: [OriginServer] = []
    private var running: [OriginStream] = []
    private var fault = DialFault.refused

    init(
        _ pool: OriginPool,
        for owner: any OriginStreamOwner,
        flow: Int,
        affinity: UInt64,
        _ preface: [UInt8],
        by end: UInt64
    ) {
        self.pool = pool
        self.owner = owner
        self.flow = flow
        self.affinity = affinity
        self.preface = preface
        self.end = end
    }

    /// The server that was tried last.
    package var lastServer: OriginServer? { tried.last }

    /// Connects, beginning with a server.
    func begin(_ first: OriginServer) -> OriginPool.Connecting {
        switch tryServers(first) {
        case .connected(let stream):
            guard let owner = finish() else { return .failed(fault, lastServer) }
            stream.take(for: owner, flow: flow)
            return .connected(stream)
        case .waiting: return .dialing(self)
        case .failed:
            _ = finish()
            return .failed(fault, lastServer)
        }
    }

    /// Ends the dial. Its owner has no use for a connection any more.
    package func cancel() {
        owner = nil
        abandonRunning()
    }

    // MARK: Events of streams

    /// A connect ended well.
    func connected(_ stream: OriginStream) {
        stream.server.health.connected(now: pool.lane.now)
        running.removeAll { $0 === stream }
        guard let owner = finish() else { return stream.close() }
        stream.take(for: owner, flow: flow)
        owner.originConnected(stream)
    }

    /// A connect failed.
    func failed(_ stream: OriginStream, _ error: SocketError) {
        running.removeAll { $0 === stream }
        note(error, stream.server, begunAt: stream.begunAt)
        if let failure = stream.handshakeFault {
            pool.host.note(.handshakeFailed(failure))
            fault = .handshakeFailed(failure)
        }
        stream.close()
        goOn()
    }

    /// A connect has not ended by its deadline: that of its head start, or that of the connect.
    func deadlinePassed(_ stream: OriginStream) {
        let now = pool.lane.now
        let last = min(end, stream.begunAt &+ pool.settings.connectTimeout)
        guard now < last else { return failed(stream, .connectTimedOut) }
        stream.setDeadline(milliseconds: last - now)
        guard running.count < Self.parallelMax,
            let next = nextServer(onlyFit: true)
        else { return }
        stream.server.health.suspected(until: last)
        tell(tryServers(next))
    }

    // MARK: Attempts

    private enum Step {
        case connected(OriginStream)
        case waiting
        case failed
    }

    /// Tries servers, beginning with this one, until a connect runs or has ended well.
    private func tryServers(_ first: OriginServer?) -> Step {
        var next = first
        while let server = next, pool.lane.now < end {
            tried.append(server)
            do throws(SocketError) {
                let stream = try pool.open(server, for: .dial(self), preface)
                stream.flow = flow
                if stream.isConnected { return .connected(stream) }
                running.append(stream)
                let time = min(pool.settings.connectTimeout, end - pool.lane.now)
                stream.setDeadline(milliseconds: min(time, Self.headStartMilliseconds))
                return .waiting
            } catch {
                note(error, server, begunAt: pool.lane.now)
                if fault == .outOfDescriptors { break }
            }
            next = nextServer(onlyFit: !running.isEmpty)
        }
        return running.isEmpty ? .failed : .waiting
    }

    private func nextServer(onlyFit: Bool) -> OriginServer? {
        pool.server(after: tried, affinity: affinity, onlyFit: onlyFit)
    }

    /// One connect less runs: tries what is left.
    private func goOn() {
        guard owner != nil else { return }
        tell(tryServers(nextServer(onlyFit: !running.isEmpty)))
    }

    private func tell(_ step: Step) {
        switch step {
        case .connected(let stream): connected(stream)
        case .waiting: break
        case .failed: finish()?.originUnreachable(fault, lastServer)
        }
    }

    private func note(_ error: SocketError, _ server: OriginServer, begunAt: UInt64) {
        pool.host.note(.connectFailed)
        guard !error.isShortage else {
            fault = .outOfDescriptors
            return
        }
        fault = error.isTimeout ? .timedOut : .refused
        server.connectFailed(error, begunAt: begunAt, on: pool.lane)
    }

    private func finish() -> (any OriginStreamOwner)? {
        defer { owner = nil }
        abandonRunning()
        return owner
    }

    /// A connect that has taken suspiciously long goes on as a trial: its end says whether the
    /// server is to be passed over.
    private func abandonRunning() {
        let now = pool.lane.now
        for stream in running {
            let last = min(end, stream.begunAt &+ pool.settings.connectTimeout)
            if now >= stream.begunAt &+ Self.headStartMilliseconds, now < last {
                // The head start of the next server is no time to judge this one by.
                stream.setDeadline(milliseconds: last - now)
                stream.becomeTrial()
            } else {
                stream.close()
            }
        }
        running = []
    }
}
