import EventLoops
import Histogram
import Verification

/// The part of a run on one event loop. It is used on the loop's queue alone.
final class LoadLoop {
    let number: Int
    let plan: LoadPlan
    let tell: @Sendable (LoopNews) -> Void
    let clients: ConnectionPool
    /// One connection, for calls of the challenges endpoint.
    let callers: ConnectionPool

    var devices: DeviceSet
    var signer: Signer
    /// The sessions of the devices, where requests are signed with them.
    var sessions: SessionStock
    var preSigned = PreSigned.empty
    var challenges: ChallengeStock
    var replays = ReplayMemory()
    var stale: StaleSupply
    var strangers: [ProofTexts] = []

    var isCalling = false
    /// The loop makes no calls before this moment.
    var callAt: UInt64 = 0
    /// The loop reports `ready` when it has this number of challenges, and all connections.
    var challengesWanted = 0
    var awaitsReadiness = false

    var alarm: Alarm?
    var startAt: UInt64 = 0
    var isIssuing = false
    private var isFinished = false
    /// Requests that were sent, and those of them without an answer.
    var issued: UInt64 = 0
    var underWay = 0
    /// The last attempt found no connection, device or challenge.
    var isBlocked = false

    var measurements: Measurements
    var interval = Interval()
    let forecast: EnforcementForecast
    /// The changes to a request that the gateway can detect.
    let tamperings: [Sending]
    let isReplaying: Bool
    let countLimit: UInt64

    var template: RequestTemplate { plan.template }
    var pacing: Pacing { plan.options.pacing }
    private var loopCount: Int { plan.options.loops }

    /// Below this number of challenges the loop asks for more.
    static let challengeStock = 32

    init(
        _ plan: LoadPlan,
        number: Int,
        on loop: EventLoop,
        tell: @escaping @Sendable (LoopNews) -> Void
    ) {
        (self.plan, self.number, self.tell) = (plan, number, tell)
        clients = ConnectionPool(plan, count: plan.connectionCount(loop: number), on: loop)
        callers = ConnectionPool(
            callsTo: plan.server,
            count: 1,
            timeout: plan.options.responseTimeout,
            on: loop
        )
        isReplaying = plan.options.mix.share(of: .replayed) > 0
        let count = plan.deviceCount(loop: number)
        let staleCount = plan.staleDeviceCount(loop: number)
        devices = DeviceSet(
            count: count - staleCount,
            firstCounter: plan.fleet.nextCounter,
            underWayMax: plan.demand.underWayMax
        )
        signer = Signer(plan.devices, plan.mint)
        challenges = ChallengeStock(lifetime: plan.challengeLifetime)
        sessions = SessionStock(plan.template, deviceCount: count)
        stale = StaleSupply(usesChallenges: plan.needsChallenges, staleCount)
        forecast = EnforcementForecast(plan.rule, by: plan.options.proof)
        tamperings = plan.demand.tamperings(hasContent: plan.template.hasContent)
        measurements = Measurements(stageCount: plan.options.pacing.stages.count)
        countLimit = plan.options.pacing.countLimit(loop: number, of: plan.options.loops)
    }

    /// Opens all connections, and gets a stock of challenges if requests need them.
    func open() {
        do throws(SocketError) {
            alarm = try Alarm(on: clients.loop)
        } catch {
            return tell(.failed("\(error)"))
        }
        // Cycles on purpose: loop, alarm and connections live as long as the process.
        alarm?.rang = { [self] in work() }
        (clients.owner, callers.owner) = (self, self)
        if plan.options.mix.share(of: .unknown) > 0 {
            let count = plan.needsChallenges ? RequestTemplate.challengeCount : 0
            let challenge = [UInt8](repeating: UInt8(ascii: "A"), count: count)
            strangers = (0..<16).map { signer.signAsStranger($0, challenge, of: template) }
        }
        prepare(challenges: plan.needsChallenges ? clients.exchangesMax + Self.challengeStock : 0)
    }

    /// Opens missing connections: the gateway does not wait long for a first request. Gets this
    /// number of challenges, then reports `ready`.
    func prepare(challenges: Int) {
        challengesWanted = challenges
        awaitsReadiness = true
        clients.fill()
        work()
    }

    /// Begins at a moment of the monotonic clock.
    func start(at moment: UInt64, _ preSigned: PreSigned) {
        self.preSigned = preSigned
        startAt = moment
        isIssuing = true
        alarm?.set(nanoseconds: moment)
    }

    /// Goes on where it can: a request or a call is due, or a connection is free.
    func work() {
        let least = isIssuing && plan.needsChallenges ? Self.challengeStock : 0
        if challenges.count < max(challengesWanted, least) { callForChallenges() }
        guard awaitsReadiness else { return pump() }
        guard clients.isComplete, challenges.count >= challengesWanted else { return }
        awaitsReadiness = false
        challengesWanted = 0
        tell(.ready)
    }

    /// Sends no more requests, and waits for the answers.
    func stop() {
        isIssuing = false
        clients.isRefilling = false
        finishIfDone()
    }

    /// The counts since the last call; also reopens connections.
    func takeInterval() -> Interval {
        if isIssuing { clients.fill() }
        work()
        var taken = interval
        taken.backlog = backlog(at: MonotonicClock.nanoseconds)
        interval = Interval()
        return taken
    }

    func results() -> LoopResults {
        isIssuing = false
        clients.closeAll()
        callers.closeAll()
        measurements[.resent] = clients.resentCount
        measurements[.signed] = signer.count + sessions.signedCount
        measurements[.signingNanoseconds] = signer.nanoseconds + sessions.signingNanoseconds
        return LoopResults(measurements: measurements, endCounter: devices.endCounter)
    }

    func finishIfDone() {
        guard !isFinished, !isIssuing, underWay == 0, startAt > 0 else { return }
        isFinished = true
        tell(.finished)
    }

    /// A request's place in the run: event loops take turns.
    func place(of request: LoadRequest) -> UInt64 {
        request.number * UInt64(loopCount) + UInt64(number)
    }

    /// Nanoseconds from the start until the next request is due; `nil` in a closed loop.
    var nextDue: UInt64? { pacing.due(issued, loop: number, of: loopCount) }

    /// Requests that are due and were not sent.
    func backlog(at now: UInt64) -> UInt64 {
        guard isIssuing, let schedule = pacing.schedule, now > startAt else { return 0 }
        let all = schedule.dueCount(by: min(now - startAt, pacing.end))
        let due = min(UInt64(all / Double(loopCount)), countLimit)
        return due - min(due, issued)
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
