import Lanes

/// One server of an origin on one lane.
package final class OriginServer {
    package let settings: OriginServerSettings
    /// Idle connections; the one used last is used next, so that the others can grow old.
    @exclusivity(unchecked) private var idle: [OriginStream] = []
    /// Those that have become idle since the lane last asked for events.
    @exclusivity(unchecked) private var fresh: [OriginStream] = []
    /// The lane's round in which `fresh` became idle.
    private var freshRound: UInt64 = 0
    /// Connections that are for a request that waited, by its number.
    private var promised: [UInt64: OriginStream] = [:]

    /// Whether the server is still the origin's.
    private var isGone = false
    private let ejection: Ejection
    private let origin: OriginState

    init(_ settings: OriginServerSettings, of origin: OriginSettings) {
        self.settings = settings
        ejection = origin.rules.ejection
        self.origin = origin.state
    }

    package var state: ServerState { settings.state }

    package var health: ServerHealth { settings.state.health }

    /// A response began.
    func responded(status: Int, on lane: Lane) {
        state.health.responded(now: lane.now)
        if ejection.isFailure(status) {
            failed(.status(status), on: lane)
        } else {
            state.succeeded()
        }
    }

    func connectFailed(_ error: SocketError, begunAt: UInt64, on lane: Lane) {
        let fault: ServerHealth.Fault = error.isTimeout ? .connectTimedOut : .refused
        health.failed(fault, begunAt: begunAt, now: lane.now)
        let failure: ServerFailure =
            if error == .handshakeFailed { .handshake } else {
                error.isTimeout ? .connectTimeout : .refused
            }
        state.note(failure, wall: lane.wallMilliseconds)
    }

    /// A request failed. A connect that fails has the server passed over by itself.
    func failed(_ failure: ServerFailure, on lane: Lane) {
        state.note(failure, wall: lane.wallMilliseconds)
        guard ejection.failures > 0, state.requestFailed() >= ejection.failures else { return }
        origin.eject(state, ejection, now: lane.now)
    }

    /// Takes a connection that was begun with this preface and has shown no sign of its end.
    ///
    /// What the origin has sent since its last response would be taken for the response to the next
    /// request (RFC 9112 §9.2). Of a connection that became idle before the lane's round that is
    /// known. Where all became idle in it the lane looks once for all of them; of one that it could
    /// not tell about, the kernel is asked.
    func takeIdle(_ preface: [UInt8], on lane: Lane) -> OriginStream? {
        if isLimited, !origin.lendsIdle { return nil }
        settle(lane.round)
        if idle.isEmpty, !fresh.isEmpty {
            lane.look()
            settle(lane.round)
        }
        while let stream = Self.takeLast(preface, of: &idle) {
            countOut(stream)
            if stream.isFit { return stream }
            stream.close()
        }
        while let stream = Self.takeLast(preface, of: &fresh) {
            countOut(stream)
            if stream.isFitNow() { return stream }
            stream.close()
        }
        return nil
    }

    private static func takeLast(
        _ preface: [UInt8],
        of streams: inout [OriginStream]
    ) -> OriginStream? {
        // As a rule there is none, and all connections are alike.
        guard !preface.isEmpty else { return streams.popLast() }
        return streams.lastIndex { $0.preface == preface }.map { streams.remove(at: $0) }
    }

    func keep(_ stream: OriginStream, max: Int) {
        settle(stream.lane.round)
        guard !isGone, max > 0 else { return stream.close() }
        if isLimited {
            let lane = stream.lane.number
            switch origin.rests(state, on: lane, isShareable: stream.preface.isEmpty) {
            case .kept: stream.isCountedIdle = true
            case .given(let waiter):
                promised[waiter] = stream
                return
            case .closes: return stream.closeInOrder()
            }
        }
        if idleCount >= max {
            // One that is good for a single client alone makes room for that of another.
            guard !stream.preface.isEmpty, let oldest = idle.first ?? fresh.first else {
                countOut(stream)
                return stream.close()
            }
            forget(oldest)
            oldest.close()
        }
        fresh.append(stream)
    }

    /// Counts those among the idle that became so in an earlier round.
    private func settle(_ round: UInt64) {
        guard round != freshRound else { return }
        freshRound = round
        idle.append(contentsOf: fresh)
        fresh.removeAll(keepingCapacity: true)
    }

    package var idleCount: Int { idle.count + fresh.count }

    func closeIdle() {
        for stream in idle + fresh {
            countOut(stream)
            stream.closeInOrder()
        }
        idle = []
        fresh = []
    }

    /// The server is the origin's no more. Connections in use are closed when their request ends.
    func leave() {
        isGone = true
        closeIdle()
    }

    func forget(_ stream: OriginStream) {
        countOut(stream)
        if let given = promised.first(where: { $0.value === stream }) { promised[given.key] = nil }
        if let index = idle.lastIndex(where: { $0 === stream }) { idle.remove(at: index) }
        if let index = fresh.lastIndex(where: { $0 === stream }) { fresh.remove(at: index) }
    }

    // MARK: Places

    /// Whether the number of its connections is limited.
    var isLimited: Bool { settings.connectionsMax != nil }

    /// Whether a request may have a connection now.
    ///
    /// - orIdle: an idle one will do.
    func hasRoom(orIdle: Bool) -> Bool {
        guard isLimited else { return true }
        return origin.hasRoom(state) || orIdle && idleCount > 0 && origin.lendsIdle
    }

    /// Takes a place for a connection, where that needs one.
    func reserve() -> Bool { !isLimited || origin.reserve(state) }

    /// A connection that held a place is closed, or was not made.
    func freed(on lane: Lane) {
        guard isLimited else { return }
        origin.freed(state, now: lane.now)
    }

    /// The connection that is for this waiter.
    func takePromised(_ waiter: UInt64) -> OriginStream? {
        promised.removeValue(forKey: waiter)
    }

    /// Closes the oldest idle connection: a request of another lane waits for its place.
    func yield() {
        guard !origin.lendsIdle, let oldest = idle.first ?? fresh.first else { return }
        forget(oldest)
        oldest.closeInOrder()
    }

    private func countOut(_ stream: OriginStream) {
        guard stream.isCountedIdle else { return }
        stream.isCountedIdle = false
        origin.leftIdle(state, on: stream.lane.number)
    }
}
