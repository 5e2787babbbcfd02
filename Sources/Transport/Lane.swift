import CLinux
package import Dispatch
import Glibc

/// A serial queue with an epoll set: where connections live.
///
/// `@unchecked Sendable`: every stored property below is touched on `queue` alone, after `start()`;
/// entries from outside check that with `preconditionOnQueue()`.
package final class Lane: @unchecked Sendable {
    /// Octets that one read can bring.
    package static let inputBytes = FairQueue.inputRange.upperBound
    /// Octets of ciphertext that one read can bring: two full records.
    private static let ciphertextBytes = 36 << 10
    /// What connections are watched for: both directions and the peer's end, edge-triggered.
    package static let bothEdges = clinux_both_edges
    /// Told to an endpoint that is resumed; no bit of epoll's.
    static let resumed: UInt32 = 1 << 24
    /// Nanoseconds after which the lane asks for events again, whoever still waits, while somebody
    /// may have come who goes before them.
    private static let roundNanoseconds: UInt64 = 100_000
    /// Nanoseconds after which it does so in any case, and Dispatch gets the thread back.
    private static let turnNanoseconds: UInt64 = 8_000_000
    /// Nanoseconds without another flow after which none is expected any more. To ask often costs a
    /// lane whose clients are all in one flow some percent, and brings them nothing.
    private static let othersNanoseconds: UInt64 = 100_000_000
    /// Flows of a lane. Clients whose addresses fall into the same one share their turns.
    package static let flowCount = 4096
    /// Milliseconds in a tick of the timer wheel.
    private static let tickMilliseconds: UInt64 = 50

    package let number: Int
    package let queue: DispatchQueue
    /// The monotonic clock in milliseconds, read once a round.
    package private(set) var now: UInt64
    /// The wall clock in milliseconds since 1970, read once a round.
    package private(set) var wallMilliseconds: Int64
    /// When the current turn began, monotonic nanoseconds.
    package private(set) var turnBeganAt: UInt64 = 0
    /// Events that the current turn has served so far.
    package private(set) var turnEvents = 0
    /// How often the current turn has asked the system for events; none where it serves other work.
    package private(set) var turnPolls = 0
    /// How often the lane has been told all events there were.
    package private(set) var round: UInt64 = 0

    /// Where every read of this lane lands; valid until the next read.
    private let wholeInput: UnsafeMutableRawBufferPointer
    /// As much of it as the endpoint that is being served should read at once.
    var input: UnsafeMutableRawBufferPointer { .init(rebasing: wholeInput[..<inputMax]) }
    private var inputMax = inputBytes
    /// Octets that the endpoint being served has read.
    var inputCount = 0
    /// Where ciphertext lands before it is decrypted into ``input``.
    let ciphertextInput: UnsafeMutableRawBufferPointer

    private let wallClock: @Sendable () -> Int64
    private let set: Int32
    private let source: any DispatchSourceRead
    private let timer: any DispatchSourceTimer
    private var slots: [Slot] = []
    private var free: [UInt32] = []
    private var wheel: TimerWheel
    private var isTicking = false
    private var due: [TimerWheel.Entry] = []
    private var waiting = FairQueue(flows: flowCount)
    /// The flow that was served last, and until when others are expected beside it.
    private var servedFlow = 0
    private var othersUntil: UInt64 = 0
    /// A turn of its own is due for those that wait.
    private var isTurnDue = false
    private var events = [clinux_event](repeating: clinux_event(), count: 256)
    /// Called at the end of every turn.
    package var turnEnded: (() -> Void)?

    private struct Slot {
        var endpoint: Endpoint?
        var generation: UInt32 = 0
    }

    /// The system's wall clock: milliseconds since 1970.
    package static let systemWallClock: @Sendable () -> Int64 = { clinux_wall_milliseconds() }

    /// A lane that is not yet served; call ``start()``. Tests bring a wall clock that they step.
    ///
    /// - Throws: `SocketError` when the system has no more descriptors.
    package init(
        number: Int,
        wallClock: @escaping @Sendable () -> Int64 = systemWallClock
    ) throws(SocketError) {
        self.number = number
        self.wallClock = wallClock
        set = clinux_epoll_create()
        guard set >= 0 else { throw SocketError("epoll_create1") }
        queue = DispatchQueue(label: "portcullis.lane.\(number)")
        source = DispatchSource.makeReadSource(fileDescriptor: set, queue: queue)
        timer = DispatchSource.makeTimerSource(queue: queue)
        wholeInput = .allocate(byteCount: Self.inputBytes, alignment: 64)
        ciphertextInput = .allocate(byteCount: Self.ciphertextBytes, alignment: 64)
        now = clinux_coarse_milliseconds()
        wallMilliseconds = wallClock()
        wheel = TimerWheel(now: now / Self.tickMilliseconds)
    }

    deinit {
        // A source that is watched must outlive its descriptor's use, and one that was never
        // activated can't be released.
        source.setCancelHandler { [set] in _ = Glibc.close(set) }
        source.activate()
        source.cancel()
        timer.activate()
        timer.cancel()
        wholeInput.deallocate()
        ciphertextInput.deallocate()
    }

    /// Begins to serve. Called once.
    package func start() {
        // Weak: Dispatch may have queued a call when the last reference goes.
        source.setEventHandler { [weak self] in self?.turn() }
        timer.setEventHandler { [weak self] in self?.turn { $0.tickPassed() } }
        timer.schedule(deadline: .distantFuture)
        source.activate()
        timer.activate()
    }

    /// Traps unless the caller runs on this lane.
    package func preconditionOnQueue() { dispatchPrecondition(condition: .onQueue(queue)) }

    /// Lets an endpoint wait to be resumed, behind others.
    package func resume(_ endpoint: Endpoint) {
        guard let token = endpoint.token else { return }
        waiting.append(Self.slot(token), Self.resumed, to: endpoint.flow)
    }

    /// Serves work that arrived from outside, then ends the turn as events do.
    package func perform(_ work: @escaping @Sendable () -> Void) {
        queue.async { [self] in turn { _ in work() } }
    }
}

// Registration.
extension Lane {
    /// Watches an endpoint's descriptor, edge-triggered for both directions unless told otherwise.
    package func register(
        _ endpoint: Endpoint,
        events: UInt32 = Lane.bothEdges
    ) throws(SocketError) {
        let slot: UInt32
        if let last = free.popLast() {
            slot = last
        } else {
            slot = UInt32(slots.count)
            slots.append(Slot())
        }
        slots[Int(slot)].generation &+= 1
        let token = UInt64(slots[Int(slot)].generation) << 32 | UInt64(slot)
        guard clinux_epoll_add(set, endpoint.descriptor, events, token) == 0 else {
            let error = SocketError("epoll_ctl")
            free.append(slot)
            throw error
        }
        slots[Int(slot)].endpoint = endpoint
        endpoint.token = token
    }

    func forget(_ endpoint: Endpoint) {
        guard let token = endpoint.token else { return }
        _ = clinux_epoll_remove(set, endpoint.descriptor)
        let slot = Self.slot(token)
        slots[slot].endpoint = nil
        if !waiting.holds(slot) { free.append(UInt32(slot)) }
        endpoint.token = nil
    }

    /// Leaves an endpoint registered, its descriptor unwatched.
    func unwatch(_ descriptor: Int32) { _ = clinux_epoll_remove(set, descriptor) }

    func watchAgain(_ descriptor: Int32, events: UInt32, token: UInt64) {
        _ = clinux_epoll_add(set, descriptor, events, token)
    }

    private static func slot(_ token: UInt64) -> Int { Int(UInt32(truncatingIfNeeded: token)) }

    private func endpoint(_ token: UInt64) -> Endpoint? {
        let slot = Self.slot(token)
        guard slot < slots.count, slots[slot].generation == UInt32(token >> 32) else { return nil }
        return slots[slot].endpoint
    }
}

// Turns.
extension Lane {
    private func beginTurn() {
        turnBeganAt = MonotonicClock.nanoseconds
        turnEvents = 0
        turnPolls = 0
    }

    private func turn() {
        beginTurn()
        repeat {
            let count = Int(clinux_epoll_take(set, &events, Int32(events.count)))
            readClocks()
            turnPolls += 1
            if count >= 0, count < events.count { round &+= 1 }
            if count > 0 { note(count) }
            guard serveRound() > 0 else { break }
        } while MonotonicClock.nanoseconds &- turnBeganAt < Self.turnNanoseconds
        endTurn()
    }

    /// A turn that does other work before it serves.
    private func turn(_ work: (Lane) -> Void) {
        beginTurn()
        readClocks()
        work(self)
        serveRound()
        endTurn()
    }

    /// Notes so many of `events`, and lets those that they concern wait for their turn. All are
    /// noted before one is served, so that whoever is served early knows what there is of others: a
    /// pooled connection with news is not used.
    private func note(_ count: Int) {
        for index in 0..<count {
            let (token, news) = (events[index].token, events[index].events)
            guard let endpoint = endpoint(token) else { continue }
            endpoint.noted(news)
            waiting.append(Self.slot(token), news, to: endpoint.flow)
        }
    }

    /// Serves those that wait, for a while.
    ///
    /// - Returns: how many were served.
    @discardableResult
    private func serveRound() -> Int {
        var served = 0
        let roundBeganAt = MonotonicClock.nanoseconds
        var now = roundBeganAt
        while let turn = waiting.next() {
            if turn.flow != servedFlow {
                servedFlow = turn.flow
                othersUntil = now &+ Self.othersNanoseconds
            }
            inputMax = turn.inputMax
            inputCount = 0
            if let endpoint = slots[turn.member].endpoint {
                endpoint.ready(turn.news)
            } else {
                // It was closed while it waited.
                free.append(UInt32(turn.member))
            }
            let began = now
            now = MonotonicClock.nanoseconds
            waiting.charge(nanoseconds: now &- began, octets: inputCount)
            served += 1
            let mayMeetOthers = waiting.hasBusy && now < othersUntil
            let limit = mayMeetOthers ? Self.roundNanoseconds : Self.turnNanoseconds
            if now &- roundBeganAt >= limit { break }
        }
        turnEvents += served
        inputMax = Self.inputBytes
        return served
    }

    /// What still waits gets a turn of its own, behind whatever else Dispatch has for this queue.
    private func endTurn() {
        turnEnded?()
        guard !waiting.isEmpty, !isTurnDue else { return }
        isTurnDue = true
        queue.async { [self] in
            isTurnDue = false
            turn()
        }
    }

    private func readClocks() {
        now = clinux_coarse_milliseconds()
        wallMilliseconds = wallClock()
    }
}

// Deadlines.
extension Lane {
    func tick(after milliseconds: UInt64) -> UInt64 {
        let (end, overflow) = now.addingReportingOverflow(milliseconds)
        return overflow ? .max : end / Self.tickMilliseconds &+ 1
    }

    func file(_ endpoint: Endpoint, at tick: UInt64) {
        guard let token = endpoint.token else { return }
        endpoint.filedTick = wheel.file(token, at: tick)
        guard !isTicking else { return }
        isTicking = true
        let interval = DispatchTimeInterval.milliseconds(Int(Self.tickMilliseconds))
        timer.schedule(deadline: .now() + interval, repeating: interval, leeway: .milliseconds(5))
    }

    private func tickPassed() {
        let tick = now / Self.tickMilliseconds
        wheel.advance(to: tick, into: &due)
        for entry in due {
            guard let endpoint = endpoint(entry.token), endpoint.filedTick == entry.tick else {
                continue
            }
            endpoint.filedTick = nil
            guard let deadline = endpoint.deadlineTick else { continue }
            if deadline <= tick {
                endpoint.deadlineTick = nil
                endpoint.deadlinePassed()
            } else {
                endpoint.filedTick = wheel.file(entry.token, at: deadline)
            }
        }
        due.removeAll(keepingCapacity: true)
        if wheel.count == 0 {
            isTicking = false
            timer.schedule(deadline: .distantFuture)
        }
    }
}
