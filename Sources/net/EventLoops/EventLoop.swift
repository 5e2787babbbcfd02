import CLinux
package import Dispatch
import Glibc

/// A serial queue with an epoll set, on which connections live.
///
/// `@unchecked Sendable`: every stored property below is constant and `Sendable`, or after
/// `start()` is used on `queue` only; calls from outside check that with `preconditionOnQueue()`.
package final class EventLoop: @unchecked Sendable {
    /// Bytes that one read can bring.
    package static let inputBytes = FairQueue.inputRange.upperBound
    /// Bytes of ciphertext that one read can bring: two full records.
    private static let ciphertextBytes = 36 << 10
    /// The events of connections: both directions and the peer's end, edge-triggered.
    package static let bothEdges = clinux_both_edges
    /// The mailbox's token. No slot has this number.
    private static let mailToken = UInt64.max
    /// The event of a resumed endpoint; no bit of epoll's.
    static let resumed: UInt32 = 1 << 24
    /// Longest time between two epoll_wait calls while another flow may be ready or a transfer goes
    /// on, nanoseconds.
    private static let roundNanoseconds: UInt64 = 100_000
    /// Nanoseconds after which an iteration ends at the latest, and Dispatch gets the thread back.
    private static let iterationNanoseconds: UInt64 = 8_000_000
    /// Nanoseconds between two calls of ``iterationLasts``. What is written in batches is handed
    /// over at an iteration's end, and beside a transfer an iteration is too long for that.
    private static let lastingNanoseconds: UInt64 = 2_000_000
    /// The fewest bytes that a transfer reads in a turn, unless its turn's limit is lower.
    private static let transferBytes = 32 << 10
    /// An iteration that served fewer than 4 events returns to Dispatch. After so few, usually no
    /// other endpoint is ready, and another poll would be a wasted system call. An endpoint that is
    /// ready starts the next iteration.
    private static let fewEvents = 3
    /// Milliseconds that an event loop itself waits for events. After that Dispatch waits, which
    /// wakes two threads for one event: more work than relaying a request.
    private static let patienceMilliseconds: Int32 = 8
    /// Nanoseconds without another flow after which none is expected. If all clients of an event
    /// loop are in one flow and none has a transfer, frequent epoll_wait calls cost some percent
    /// and gain nothing.
    private static let othersNanoseconds: UInt64 = 100_000_000
    /// Flows of an event loop. Clients whose addresses map to the same flow share their turns.
    package static let flowCount = 4096
    /// Milliseconds in a tick of the timer wheel.
    private static let tickMilliseconds: UInt64 = 50

    package let number: Int
    package let queue: DispatchQueue
    /// The monotonic clock in milliseconds, read once a round.
    package var now: UInt64 { clocks.now }
    /// The wall clock in milliseconds since 1970, read once a round.
    package var wallMilliseconds: Int64 { clocks.wall }
    private var clocks: (now: UInt64, wall: Int64)
    /// The monotonic clock in nanoseconds, read once a round and behind each served endpoint.
    private var readAt: UInt64
    /// The current iteration, so far.
    package struct Iteration {
        /// Monotonic nanoseconds.
        package fileprivate(set) var beganAt: UInt64 = 0
        /// How long it took, once it has ended.
        package fileprivate(set) var nanoseconds: UInt64 = 0
        package fileprivate(set) var events = 0
        /// The number of polls for events; 0 where the iteration is a tick's.
        package fileprivate(set) var polls = 0
    }

    package var iteration: Iteration { currentIteration }
    private var currentIteration = Iteration()
    /// When the last iteration ended, monotonic nanoseconds.
    private var endedAt: UInt64 = 0
    /// Nanoseconds of the last iterations, and between them: each counts seven eighths of the next.
    private var spent: (serving: UInt64, waiting: UInt64) = (0, 0)
    /// Whether it has hardly waited for events of late, so that requests wait for its thread.
    package var isBusy: Bool { spent.waiting < spent.serving / 8 }
    /// The number of polls that returned all ready events.
    package var round: UInt64 { roundsEnded }
    private var roundsEnded: UInt64 = 0

    /// The memory for every read of this event loop; valid until the next read.
    let wholeInput: UnsafeMutableRawBufferPointer
    /// The part of it that the served endpoint should read at once.
    var input: UnsafeMutableRawBufferPointer { .init(rebasing: wholeInput[..<inputMax]) }
    private var inputMax = inputBytes
    /// Bytes that the served endpoint has read.
    var inputCount = 0
    /// The memory for ciphertext before it is decrypted into ``input``.
    let ciphertextInput: UnsafeMutableRawBufferPointer

    private let wallClock: @Sendable () -> Int64
    let set: Int32
    private let mailbox: Mailbox
    private let source: any DispatchSourceRead
    private let timer: any DispatchSourceTimer
    let table = EndpointTable()
    @exclusivity(unchecked) private var wheel: TimerWheel
    private var isTicking = false
    private var due: [TimerWheel.Entry] = []
    @exclusivity(unchecked) private(set) var waiting = FairQueue(flows: flowCount)
    /// The last served flow, and until when other flows are expected beside it.
    private var servedFlow = 0
    private var othersUntil: UInt64 = 0
    /// Other threads have work.
    private var hasMail = false
    /// Work waits that epoll has reported, and does not report again.
    private var hasWork: Bool { hasMail || !waiting.isEmpty }
    /// Dispatch will call, with or without events.
    private var isCallDue = false
    @exclusivity(unchecked) private var events = [clinux_event](
        repeating: clinux_event(),
        count: 256
    )
    /// Memory for the bytes that an event writes.
    var output: [UInt8] = []
    /// Called every ``lastingNanoseconds`` of an iteration, before it polls again.
    package var iterationLasts: (() -> Void)?
    /// When it was called in this iteration, or when this began.
    private var lastsSince: UInt64 = 0
    /// Called at the end of every iteration.
    package var iterationEnded: (() -> Void)?
    private var stage = Stage.made

    /// What Dispatch knows about the event loop.
    private enum Stage {
        case made
        case served
    }

    /// The system's wall clock: milliseconds since 1970.
    package static let systemWallClock: @Sendable () -> Int64 = { clinux_wall_milliseconds() }

    /// An event loop that does not run yet; call ``start()``. Tests pass a wall clock that they
    /// step.
    ///
    /// - Throws: `SocketError` when the system has no more descriptors.
    package init(
        number: Int,
        wallClock: @escaping @Sendable () -> Int64 = systemWallClock
    ) throws(SocketError) {
        self.number = number
        self.wallClock = wallClock
        mailbox = try Mailbox()
        set = clinux_epoll_create()
        guard set >= 0 else { throw SocketError("epoll_create1") }
        guard clinux_epoll_add(set, mailbox.descriptor, Self.bothEdges, Self.mailToken) == 0 else {
            let error = SocketError("epoll_ctl")
            _ = Glibc.close(set)
            throw error
        }
        queue = DispatchQueue(label: "portcullis.loop.\(number)")
        source = DispatchSource.makeReadSource(fileDescriptor: set, queue: queue)
        timer = DispatchSource.makeTimerSource(queue: queue)
        wholeInput = .allocate(byteCount: Self.inputBytes, alignment: 64)
        ciphertextInput = .allocate(byteCount: Self.ciphertextBytes, alignment: 64)
        readAt = MonotonicClock.nanoseconds
        clocks = (readAt / 1_000_000, wallClock())
        wheel = TimerWheel(now: clocks.now / Self.tickMilliseconds)
    }

    deinit {
        switch stage {
        case .made:
            // A source that was never activated can't be released. Dispatch knows descriptors by
            // their numbers: closed before it has let go of this one, the next event loop with the
            // number would get no call.
            source.setCancelHandler { [set] in _ = Glibc.close(set) }
            for source in [source, timer] as [any DispatchSourceProtocol] {
                source.activate()
                source.cancel()
            }
        case .served: break
        }
        wholeInput.deallocate()
        ciphertextInput.deallocate()
    }

    /// Begins to serve, until ``stop()``. Called once.
    package func start() {
        // Dispatch references the event loop. A weak reference would make Swift count all
        // references to it in a slower way: 1,200 instructions per request.
        source.setEventHandler { [self] in serve() }
        timer.setEventHandler { [self] in tickPassed() }
        // A watched source must outlive the use of its descriptor.
        source.setCancelHandler { [set] in _ = Glibc.close(set) }
        timer.schedule(deadline: .distantFuture)
        stage = .served
        source.activate()
        timer.activate()
    }

    /// Stops serving: the event loop is freed with its last reference. From any thread.
    package func stop() {
        source.cancel()
        timer.cancel()
    }

    /// Traps unless the caller runs on this event loop.
    package func preconditionOnQueue() { dispatchPrecondition(condition: .onQueue(queue)) }

    /// Resumes an endpoint after those that already wait. On the event loop's queue only.
    package func resume(_ endpoint: Endpoint) {
        preconditionOnQueue()
        guard let token = endpoint.token else { return }
        waiting.append(EndpointTable.slot(token), Self.resumed, to: endpoint.flow)
    }

    /// Adds work for the event loop, from any thread; it is served before events.
    package func perform(_ work: @escaping @Sendable () -> Void) {
        // An event loop with work lives until the work is done.
        mailbox.post { [self] in withExtendedLifetime(self) { work() } }
    }
}

// Iterations.
extension EventLoop {
    /// The call by Dispatch. Iterations follow each other while there is work, each as soon as
    /// there is.
    private func serve() {
        let calledAt = MonotonicClock.nanoseconds
        while iterate() {
            guard readAt &- calledAt < Self.iterationNanoseconds, !hasWork else {
                return callAgain()
            }
        }
    }

    /// Serves endpoints that are ready or soon will be, until none is.
    ///
    /// - Returns: whether any was served.
    private func iterate() -> Bool {
        var count = take(hasWork ? 0 : Self.patienceMilliseconds)
        guard count > 0 || hasWork else { return false }
        beginIteration()
        while true {
            currentIteration.polls += 1
            note(count)
            guard serveMail() + serveRound() > Self.fewEvents || hasWork,
                readAt &- currentIteration.beganAt < Self.iterationNanoseconds
            else { break }
            if readAt &- lastsSince >= Self.lastingNanoseconds {
                lastsSince = readAt
                iterationLasts?()
            }
            count = take(0)
            readClocks()
        }
        endIteration()
        return true
    }

    private func beginIteration() {
        readClocks()
        currentIteration = Iteration(beganAt: readAt)
        lastsSince = readAt
    }

    private func endIteration() {
        currentIteration.nanoseconds = readAt &- currentIteration.beganAt
        spent.serving = spent.serving - spent.serving / 8 &+ currentIteration.nanoseconds
        spent.waiting = spent.waiting - spent.waiting / 8 &+ (currentIteration.beganAt &- endedAt)
        endedAt = readAt
        iterationEnded?()
    }

    /// Asks Dispatch for another call, after its other work on this queue.
    private func callAgain() {
        guard !isCallDue else { return }
        isCallDue = true
        queue.async { [self] in
            isCallDue = false
            serve()
        }
    }

    /// Polls for events.
    ///
    /// - Returns: the number of events in `events`.
    private func take(_ milliseconds: Int32) -> Int {
        let count = Int(clinux_epoll_take(set, &events, Int32(events.count), milliseconds))
        // A signal came first.
        guard count >= 0 else { return 0 }
        if count < events.count { roundsEnded &+= 1 }
        return count
    }

    /// Polls for events in the middle of an iteration. Their endpoints note them at once, and are
    /// served in their turn.
    package func look() {
        preconditionOnQueue()
        currentIteration.polls += 1
        note(take(0))
    }

    /// Notes the first `count` of `events`, and makes their endpoints wait for their turn. All are
    /// noted before one is served: a request must not use a pooled connection with unread events.
    private func note(_ count: Int) {
        for index in 0..<count {
            let (token, news) = (events[index].token, events[index].events)
            if token == Self.mailToken { hasMail = true }
            guard let endpoint = table.endpoint(token) else { continue }
            endpoint.noted(news)
            waiting.append(EndpointTable.slot(token), news, to: endpoint.flow)
        }
    }

    /// Serves waiting endpoints, for a bounded time.
    ///
    /// - Returns: the number of served endpoints.
    @discardableResult
    private func serveRound() -> Int {
        var served = 0
        let roundBeganAt = readAt
        while let turn = waiting.next() {
            if turn.flow != servedFlow {
                servedFlow = turn.flow
                othersUntil = readAt &+ Self.othersNanoseconds
            }
            inputMax = turn.inputMax
            inputCount = 0
            if let endpoint = table.endpoint(in: turn.member) {
                endpoint.ready(turn.news)
            } else {
                // It was closed while it waited.
                table.release(turn.member)
            }
            let began = readAt
            readAt = MonotonicClock.nanoseconds
            waiting.charge(nanoseconds: readAt &- began, bytes: inputCount)
            served += 1
            // A transfer goes on without an event. All clients of a balancer are one flow, and a
            // small request of theirs is seen by the next poll only.
            let isTransfer = inputCount >= min(turn.inputMax, Self.transferBytes)
            let mayMeetOthers = isTransfer || waiting.hasBusy && readAt < othersUntil
            let limit = mayMeetOthers ? Self.roundNanoseconds : Self.iterationNanoseconds
            if readAt &- roundBeganAt >= limit { break }
        }
        currentIteration.events += served
        inputMax = Self.inputBytes
        return served
    }

    /// Does the work from other threads.
    ///
    /// - Returns: the number of work items.
    private func serveMail() -> Int {
        guard hasMail else { return 0 }
        hasMail = false
        let work = mailbox.take()
        for item in work { item() }
        // No endpoint pays for that.
        readAt = MonotonicClock.nanoseconds
        return work.count
    }

    private func readClocks() {
        readAt = MonotonicClock.nanoseconds
        clocks = (readAt / 1_000_000, wallClock())
    }
}

// Deadlines.
extension EventLoop {
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

    /// An iteration for deadlines, and for the endpoints that they make wait.
    private func tickPassed() {
        beginIteration()
        endDeadlines()
        readAt = MonotonicClock.nanoseconds
        serveRound()
        endIteration()
        if hasWork { callAgain() }
    }

    private func endDeadlines() {
        let tick = now / Self.tickMilliseconds
        wheel.advance(to: tick, into: &due)
        for entry in due {
            guard let endpoint = table.endpoint(entry.token), endpoint.filedTick == entry.tick
            else { continue }
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

// The event loop's memory, for reading and for writing.
extension EventLoop {
    /// Copies bytes into the memory for reads: valid until the next read.
    ///
    /// - bytes: at most ``inputBytes``.
    package func asRead(_ bytes: Span<UInt8>) -> UnsafeBufferPointer<UInt8> {
        let count = min(bytes.count, wholeInput.count)
        let target = UnsafeMutableRawBufferPointer(rebasing: wholeInput[..<count])
        // The memory lives as long as the event loop; the copy is made inside the call.
        bytes.extracting(first: count).withUnsafeBytes { target.copyMemory(from: $0) }
        return UnsafeBufferPointer(target.assumingMemoryBound(to: UInt8.self))
    }

    /// An empty array with the event loop's memory, for the bytes that one event writes; give it
    /// back with ``giveBack(_:)``.
    package func takeOutput() -> [UInt8] {
        var taken: [UInt8] = []
        swap(&taken, &output)
        return taken
    }

    /// Takes the array out of the caller's variable: if two variables hold an array, removing its
    /// elements copies it.
    package func giveBack(_ used: inout [UInt8]) {
        if !used.isEmpty { used.removeAll(keepingCapacity: true) }
        swap(&used, &output)
    }
}

// The endpoints that an event loop watches.
extension EventLoop {
    /// Watches an endpoint's descriptor, by default edge-triggered for both directions. On the
    /// event loop's queue only.
    package func register(
        _ endpoint: Endpoint,
        events: UInt32 = EventLoop.bothEdges
    ) throws(SocketError) {
        preconditionOnQueue()
        let token = table.reserve()
        guard clinux_epoll_add(set, endpoint.descriptor, events, token) == 0 else {
            let error = SocketError("epoll_ctl")
            table.release(EndpointTable.slot(token))
            throw error
        }
        table.put(endpoint, under: token)
        endpoint.token = token
    }

    /// Replaces an endpoint by another; both have the same descriptor.
    func replace(_ endpoint: Endpoint, by successor: Endpoint) {
        guard let token = endpoint.token else { return }
        table.put(successor, under: token)
        endpoint.token = nil
        successor.token = token
    }

    /// The way in which an endpoint leaves.
    enum Parting {
        /// Its descriptor stays open, and is no longer watched.
        case byLeaving
        /// Its descriptor is closed next. That also ends the watch, unless the descriptor has a
        /// twin (epoll(7)).
        case byClosing
    }

    func forget(_ endpoint: Endpoint, _ parting: Parting = .byLeaving) {
        guard let token = endpoint.token else { return }
        switch parting {
        case .byClosing where !endpoint.mayHaveTwins: break
        case .byClosing, .byLeaving: _ = clinux_epoll_remove(set, endpoint.descriptor)
        }
        table.remove(token)
        let slot = EndpointTable.slot(token)
        if !waiting.holds(slot) { table.release(slot) }
        endpoint.token = nil
    }

    /// Keeps an endpoint registered, but stops watching its descriptor.
    func unwatch(_ descriptor: Int32) { _ = clinux_epoll_remove(set, descriptor) }

    func watchAgain(_ descriptor: Int32, events: UInt32, token: UInt64) {
        _ = clinux_epoll_add(set, descriptor, events, token)
    }
}

/// A value that belongs to an event loop, carried through other queues back to it.
///
/// `@unchecked Sendable`: the value is reached only through ``value``, which checks first that the
/// caller runs on the value's own event loop.
package struct LoopBound<Value>: @unchecked Sendable {
    private let carried: Value
    private let loop: EventLoop

    package init(_ value: Value, on loop: EventLoop) {
        carried = value
        self.loop = loop
    }

    /// The value; traps unless the caller runs on the event loop it belongs to.
    package var value: Value {
        loop.preconditionOnQueue()
        return carried
    }
}
