import Dispatch
import EventLoops
import Glibc

/// A run from its first connection to its summary.
package struct Campaign {
    private enum Event: Sendable {
        case news(LoopNews)
        case beat
        case interrupted

        var isBeat: Bool { if case .beat = self { true } else { false } }
    }

    private let plan: LoadPlan
    private let progress: Progress
    private let units: [LoadUnit]
    private var events: AsyncStream<Event>.Iterator
    private let stream: AsyncStream<Event>.Continuation

    /// Starts the event loops; sends nothing yet.
    private init(_ plan: LoadPlan, _ progress: Progress) throws(LoadError) {
        self.plan = plan
        self.progress = progress
        let (events, stream) = AsyncStream<Event>.makeStream()
        self.events = events.makeAsyncIterator()
        self.stream = stream
        var units: [LoadUnit] = []
        for number in 0..<plan.options.loops {
            units.append(try LoadUnit(plan, number: number) { news in stream.yield(.news(news)) })
        }
        self.units = units
    }

    /// Connects, makes the signatures that are due before the start, sends, and waits for the
    /// answers.
    ///
    /// SIGINT ends the run early, with the summary so far; a second one ends it at once.
    ///
    /// - Throws: before anything is sent: that the gateway can't be reached, or that memory or the
    ///   challenges' lifetime does not suffice.
    package static func run(
        _ plan: LoadPlan,
        progress: Progress
    ) async throws(LoadError) -> Summary {
        var campaign = try Campaign(plan, progress)
        return try await campaign.run()
    }

    private mutating func run() async throws(LoadError) -> Summary {
        for unit in units { unit.tell { $0.open() } }
        try await allReady()
        let (stock, preparation) = try await signBeforehand()
        for unit in units { unit.tell { $0.reconnect() } }
        try await allReady()
        let queue = DispatchQueue(label: "portcullis-load.events")
        let beat = DispatchSource.makeTimerSource(queue: queue)
        let interrupt = DispatchSource.makeSignalSource(signal: SIGINT, queue: queue)
        signal(SIGINT, SIG_IGN)
        let stream = stream
        beat.setEventHandler { stream.yield(.beat) }
        interrupt.setEventHandler { stream.yield(.interrupted) }
        beat.schedule(deadline: .now() + 1, repeating: 1)
        interrupt.activate()
        let before = Cost.now
        let moment = before.elapsed + Self.lead
        for (unit, (signed, until)) in zip(units, stock) {
            unit.tell { $0.start(at: moment, signed, until: until) }
        }
        beat.activate()
        let (seconds, wasInterrupted) = await follow(since: moment)
        beat.cancel()
        interrupt.cancel()
        var measurements = Measurements()
        var endCounter: UInt32 = 0
        for unit in units {
            let results = await unit.ask { $0.results() }
            measurements.add(results.measurements)
            endCounter = max(endCounter, results.endCounter)
        }
        return Summary(
            plan: plan,
            measurements: measurements,
            seconds: seconds,
            cost: Cost.now - before,
            preSigned: preparation,
            wasInterrupted: wasInterrupted,
            endCounter: endCounter
        )
    }

    /// Nanoseconds in which all event loops learn the time of the start.
    private static let lead: UInt64 = 50_000_000

    private mutating func allReady() async throws(LoadError) {
        var waiting = units.count
        while waiting > 0, let event = await events.next() {
            switch event {
            case .news(.ready): waiting -= 1
            case .news(.failed(let reason)): throw LoadError(reason)
            case .news(.finished), .beat, .interrupted: break
            }
        }
    }

    /// Reports beats and news until all event loops have finished.
    private mutating func follow(
        since moment: UInt64
    ) async -> (seconds: [Summary.Second], wasInterrupted: Bool) {
        var seconds: [Summary.Second] = []
        var running = units.count
        var wasInterrupted = false
        var last = moment
        while running > 0, let event = await events.next() {
            switch event {
            case .news(.finished): running -= 1
            case .news(.ready): continue
            case .news(.failed(let reason)):
                progress.say(reason)
                continue
            case .interrupted:
                if wasInterrupted { return (seconds, true) }
                wasInterrupted = true
                for unit in units { unit.tell { $0.stop() } }
                continue
            case .beat: break
            }
            guard running == 0 || event.isBeat else { continue }
            var interval = Interval()
            for unit in units { interval.add(await unit.ask { $0.takeInterval() }) }
            let now = MonotonicClock.nanoseconds
            let length = Double(now - min(last, now)) / 1e9
            let second = Summary.Second(
                at: Double(now - min(moment, now)) / 1e9,
                length: length,
                interval: interval
            )
            last = now
            if length > 0 { seconds.append(second) }
            progress.beat(second, number: seconds.count)
        }
        return (seconds, wasInterrupted)
    }
}

extension Campaign {
    private typealias Stock = (signed: PreSigned, until: UInt64)

    /// The run makes more signatures than the plan counts on, since a busy device is skipped and
    /// another one goes twice.
    private static let spare = 1.02

    private static let tooLate = LoadError(
        "the challenges would expire before they are sent; do without --sign-before"
    )

    /// Signs for all event loops, one after another, each on all cores.
    private mutating func signBeforehand() async throws(LoadError) -> ([Stock], Summary.Preparation)
    {
        var preparation = Summary.Preparation()
        guard plan.options.isSignedBefore else {
            return (units.map { _ in (.empty, .max) }, preparation)
        }
        guard let count = plan.options.pacing.expectedCount else {
            throw LoadError("--sign-before needs --count, or --rate and --duration")
        }
        // Without a duration, late requests are signed again during the run.
        let time = plan.options.pacing.duration == nil ? 0 : plan.options.pacing.end
        guard plan.demand.challenge == nil || time < plan.challengeLifetime else {
            throw Self.tooLate
        }
        let mix = plan.options.mix
        let share = Double(mix.share(of: .good) + mix.share(of: .tampered)) / 1e6
        let loops = Double(plan.options.loops)
        let needed = Int((Double(count) * share / loops * Self.spare).rounded(.up))
        let orders = units.indices.map { order(loop: $0, needed, []) }
        preparation.bytes = orders.reduce(0) { $0 + $1.byteCount }
        preparation.count = orders.reduce(0) { $0 + $1.devices.count * $1.perDevice }
        let size = Figures.bytes(preparation.bytes)
        guard preparation.bytes < Cost.physicalMemory / 2 else {
            throw LoadError("\(size) for assertions is more than half of the machine's memory")
        }
        let total = Figures.count(UInt64(preparation.count))
        progress.say("signing \(total) assertions, \(size)")
        let start = MonotonicClock.nanoseconds
        var stock: [Stock] = []
        for (number, order) in orders.enumerated() {
            let (challenges, until) = try await gather(
                order.devices.count * order.perDevice,
                number
            )
            let signed = await PreSigned.make(self.order(loop: number, needed, challenges))
            stock.append((signed, until))
        }
        preparation.nanoseconds = MonotonicClock.nanoseconds - start
        let end = MonotonicClock.nanoseconds + Self.lead + time
        guard stock.allSatisfy({ end < $0.until }) else { throw Self.tooLate }
        return (stock, preparation)
    }

    private func order(loop: Int, _ needed: Int, _ challenges: [[UInt8]]) -> PreSigned.Order {
        let free = plan.deviceCount(loop: loop) - plan.staleDeviceCount(loop: loop)
        let devices = min(free, max(needed, 1))
        return PreSigned.Order(
            fleet: plan.devices,
            template: plan.template,
            devices: (0..<devices).map { plan.fleetIndex($0, loop: loop) },
            firstCounter: plan.fleet.nextCounter + DeviceSet.counterGap,
            perDevice: (needed + devices - 1) / devices,
            challenges: challenges
        )
    }

    private mutating func gather(
        _ count: Int,
        _ number: Int
    ) async throws(LoadError) -> ([[UInt8]], UInt64) {
        guard plan.demand.challenge != nil else { return ([], .max) }
        progress.say("fetching \(Figures.count(UInt64(count))) challenges")
        units[number].tell { $0.gather(count) }
        while let event = await events.next() {
            switch event {
            case .news(.ready): return await units[number].ask { $0.takeGathered(count) }
            case .news(.failed(let reason)): throw LoadError(reason)
            case .news(.finished), .beat, .interrupted: break
            }
        }
        return ([], .max)
    }
}

/// The results of an event loop at the end.
struct LoopResults: Sendable {
    let measurements: Measurements
    let endCounter: UInt32
}

/// The news of an event loop for the campaign.
enum LoopNews: Sendable {
    /// Connections and challenges are ready.
    case ready
    /// All requests were sent and answered.
    case finished
    /// It can't begin, for this reason.
    case failed(String)
}

/// An event loop with its part of the run, for code on other queues.
final class LoadUnit: Sendable {
    private let loop: EventLoop
    private let carried: LoopBound<LoadLoop>

    /// Starts an event loop.
    ///
    /// - `tell`: called on the event loop's queue.
    init(
        _ plan: LoadPlan,
        number: Int,
        tell: @escaping @Sendable (LoopNews) -> Void
    ) throws(LoadError) {
        do throws(SocketError) {
            loop = try EventLoop(number: number)
        } catch {
            throw LoadError("\(error)")
        }
        carried = LoopBound(LoadLoop(plan, number: number, on: loop, tell: tell), on: loop)
        loop.start()
    }

    deinit { loop.stop() }

    /// Has a closure run on the event loop.
    func tell(_ body: @escaping @Sendable (LoadLoop) -> Void) {
        loop.perform { [carried] in body(carried.value) }
    }

    /// Returns a value that a closure computes on the event loop.
    func ask<Value: Sendable>(_ body: @escaping @Sendable (LoadLoop) -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            tell { continuation.resume(returning: body($0)) }
        }
    }
}
