import Dispatch
import EventLoops
import Glibc

/// A run from its first connection to its summary.
package struct Campaign {
    private enum Event: Sendable {
        case news(LoopNews)
        case beat
        case interrupted
    }

    private let plan: LoadPlan
    private var progress: Progress
    private let loops: [OnLoop<LoadLoop>]
    private var events: AsyncStream<Event>.Iterator
    private let stream: AsyncStream<Event>.Continuation

    /// Nanoseconds in which all event loops learn the time of the start.
    private static let lead: UInt64 = 50_000_000

    /// Starts the event loops; sends nothing yet.
    private init(_ plan: LoadPlan, _ progress: Progress) throws(LoadError) {
        (self.plan, self.progress) = (plan, progress)
        self.progress.begin(plan.options.pacing.stages)
        let (events, stream) = AsyncStream<Event>.makeStream()
        (self.events, self.stream) = (events.makeAsyncIterator(), stream)
        var loops: [OnLoop<LoadLoop>] = []
        for number in 0..<plan.options.loops {
            let loop = try OnLoop(number: number) { loop in
                LoadLoop(plan, number: number, on: loop) { stream.yield(.news($0)) }
            }
            loops.append(loop)
        }
        self.loops = loops
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
        for loop in loops { loop.tell { $0.open() } }
        try await ready(loops.count)
        let (stock, preparation) = try await signBeforehand()
        for loop in loops { loop.tell { $0.prepare(challenges: 0) } }
        try await ready(loops.count)
        let queue = DispatchQueue(label: "portcullis-load.events")
        let beat = DispatchSource.makeTimerSource(queue: queue)
        let interrupt = DispatchSource.makeSignalSource(signal: SIGINT, queue: queue)
        signal(SIGINT, SIG_IGN)
        beat.setEventHandler { [stream] in stream.yield(.beat) }
        interrupt.setEventHandler { [stream] in stream.yield(.interrupted) }
        beat.schedule(deadline: .now() + 1, repeating: 1)
        interrupt.activate()
        let before = Cost.now
        let moment = before.elapsed + Self.lead
        for (loop, signed) in zip(loops, stock) { loop.tell { $0.start(at: moment, signed) } }
        beat.activate()
        let (seconds, wasInterrupted) = await follow(since: moment)
        beat.cancel()
        interrupt.cancel()
        var measurements = Measurements(stageCount: plan.options.pacing.stages.count)
        var endCounter: UInt32 = 0
        for loop in loops {
            let results = await loop.ask { $0.results() }
            measurements.add(results.measurements)
            endCounter = max(endCounter, results.endCounter)
        }
        return Summary(
            plan: plan,
            measurements: measurements,
            startedAt: moment + plan.options.pacing.warmUp,
            seconds: seconds,
            cost: Cost.now - before,
            preSigned: preparation,
            wasInterrupted: wasInterrupted,
            endCounter: endCounter
        )
    }

    private mutating func ready(_ count: Int) async throws(LoadError) {
        var waiting = count
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
    ) async -> (seconds: [RunSecond], wasInterrupted: Bool) {
        var seconds: [RunSecond] = []
        defer { progress.end() }
        var running = loops.count
        var wasInterrupted = false
        var last = moment
        while running > 0, let event = await events.next() {
            switch event {
            case .news(.finished):
                running -= 1
                if running > 0 { continue }
            case .news(.ready): continue
            case .news(.failed(let reason)):
                progress.report(reason)
                continue
            case .interrupted:
                if wasInterrupted { return (seconds, true) }
                wasInterrupted = true
                for loop in loops { loop.tell { $0.stop() } }
                continue
            case .beat: break
            }
            var interval = Interval()
            for loop in loops { interval.add(await loop.ask { $0.takeInterval() }) }
            let now = MonotonicClock.nanoseconds
            let offset = now - min(moment, now)
            let second = RunSecond(
                interval,
                endsAt: offset,
                length: now - min(last, now),
                stage: plan.options.pacing.stage(at: offset)
            )
            last = now
            if second.length > 0, seconds.count < RunSecond.countMax { seconds.append(second) }
            progress.beat(second)
        }
        return (seconds, wasInterrupted)
    }
}

// Signatures before the start.
extension Campaign {
    /// The run makes more signatures than the plan counts on, since a busy device is skipped and
    /// another one goes twice.
    private static let spare = 1.02

    private static let tooLate = LoadError(
        "the challenges would expire before they are sent; do without --sign-before"
    )

    /// Signs for all event loops, one after another, each on all cores.
    private mutating func signBeforehand() async throws(LoadError) -> (
        [PreSigned], Summary.Preparation
    ) {
        var preparation = Summary.Preparation()
        let (pacing, mix) = (plan.options.pacing, plan.options.mix)
        guard plan.options.isSignedBefore else { return (loops.map { _ in .empty }, preparation) }
        guard let count = pacing.expectedCount else {
            throw LoadError("--sign-before needs --count, or --rate and --duration")
        }
        // Without a duration, late requests are signed again during the run.
        let time = pacing.duration == nil ? 0 : pacing.end
        let needsChallenge = plan.demand.challenge != nil
        guard !needsChallenge || time < plan.challengeLifetime else { throw Self.tooLate }
        let share = Double(mix.share(of: .good) + mix.share(of: .tampered)) / 1e6
        let needed = Double(count) * share / Double(loops.count) * Self.spare
        var orders = loops.indices.map { PreSigned.Order(plan, loop: $0, Int(needed.rounded(.up))) }
        preparation.bytes = orders.reduce(0) { $0 + $1.byteCount }
        preparation.count = orders.reduce(0) { $0 + $1.count }
        let size = Figures.bytes(preparation.bytes)
        guard preparation.bytes < Cost.physicalMemory / 2 else {
            throw LoadError("\(size) for assertions is more than half of the machine's memory")
        }
        progress.say("signing \(Figures.count(UInt64(preparation.count))) assertions, \(size)")
        let start = MonotonicClock.nanoseconds
        var stock: [PreSigned] = []
        for (loop, place) in zip(loops, orders.indices) {
            let count = orders[place].count
            var goodUntil = UInt64.max
            if needsChallenge {
                progress.say("fetching \(Figures.count(UInt64(count))) challenges")
                loop.tell { $0.prepare(challenges: count) }
                try await ready(1)
                let gathered = await loop.ask { $0.challenges.takeOldest(count) }
                (orders[place].challenges, goodUntil) = gathered
            }
            stock.append(await PreSigned.make(orders[place], goodUntil: goodUntil))
        }
        preparation.nanoseconds = MonotonicClock.nanoseconds - start
        let end = MonotonicClock.nanoseconds + Self.lead + time
        guard stock.allSatisfy({ end < $0.goodUntil }) else { throw Self.tooLate }
        return (stock, preparation)
    }
}
