import DequeModule
import EventLoops
import Services
import Verification

/// The part of a run on one event loop. It is used on the loop's queue alone.
final class LoadLoop {
    let loop: EventLoop
    let number: Int
    let plan: LoadPlan
    let scratch: ResponseScratch
    /// The parts of the plan that each request needs.
    let template: RequestTemplate
    let pacing: Pacing
    let loopCount: Int
    let connectionCount: Int
    let countLimit: UInt64
    let needsChallenge: Bool
    let isReplaying: Bool
    let tell: @Sendable (LoopNews) -> Void

    var devices: DeviceSet
    var signer: Signer
    /// The sessions of the devices, where requests are signed with them.
    var sessions: SessionStock
    /// Signs the requests that open one.
    var openingSigner: Signer
    var preSigned = PreSigned.empty
    /// Until when the signatures from before the start may be sent.
    var preSignedUntil = UInt64.max
    var challenges: ChallengeStock
    var replays = ReplayMemory()
    var stale: StaleSupply
    var strangers: [ProofTexts] = []
    /// Scratch for the proof of the next request.
    var proof = ProofTexts()
    var sessionTexts = SessionStock.Texts()

    /// Connections that wait for work; the one that has waited longest is taken.
    var idle: Deque<LoadConnection> = []
    var openCount = 0
    /// When the loop tries again to open connections.
    var reopenAt: UInt64 = 0
    var caller: LoadConnection?
    var isCalling = false
    /// The loop makes no calls before this moment.
    var callAt: UInt64 = 0
    /// The event loop reports when it has this number of challenges.
    var challengesWanted = 0
    var isReady = false

    var alarm: Alarm?
    var startAt: UInt64 = 0
    var isIssuing = false
    var isFinished = false
    /// Requests that were sent, and those of them without an answer.
    var issued: UInt64 = 0
    var underWay = 0
    /// The last attempt found no connection, device or challenge.
    var isBlocked = false

    var measurements = Measurements()
    var interval = Interval()
    let expectations: [Expectation]
    let forecast: EnforcementForecast
    /// The changes to a request that the gateway can detect.
    let tamperings: [Sending]

    /// The expected answer.
    struct Expectation {
        let refusal: Refusal?
        let reason: [UInt8]

        static let admitted = Expectation(refusal: nil, reason: [])

        var text: String {
            refusal.map { "\(LocalOutcome.refused($0).row.status) \($0.rawValue)" } ?? "admitted"
        }
    }

    init(
        _ plan: LoadPlan,
        number: Int,
        on loop: EventLoop,
        tell: @escaping @Sendable (LoopNews) -> Void
    ) {
        self.plan = plan
        self.number = number
        self.loop = loop
        self.tell = tell
        scratch = ResponseScratch(method: plan.method)
        template = plan.template
        pacing = plan.options.pacing
        loopCount = plan.options.loops
        connectionCount = plan.connectionCount(loop: number)
        countLimit = pacing.countLimit(loop: number, of: loopCount)
        needsChallenge = plan.needsChallenges
        isReplaying = plan.options.mix.share(of: .replayed) > 0
        let count = plan.deviceCount(loop: number)
        let staleCount = plan.staleDeviceCount(loop: number)
        devices = DeviceSet(
            count: count - staleCount,
            firstCounter: plan.fleet.nextCounter,
            underWayMax: plan.demand.underWayMax
        )
        signer = Signer(plan.devices, template, plan.mint)
        challenges = ChallengeStock(lifetime: plan.challengeLifetime)
        sessions = SessionStock(plan.template, deviceCount: count)
        openingSigner = Signer(plan.devices, plan.openingTemplate)
        stale = StaleSupply(usesChallenges: needsChallenge, staleCount)
        forecast = EnforcementForecast(plan.rule, by: plan.options.proof)
        tamperings = plan.demand.tamperings(hasContent: template.hasContent)
        expectations = Sending.allCases.map { sending in
            let refusal = sending.expected(
                hasDeclaredDigest: plan.demand.declaresDigest,
                by: plan.options.proof
            )
            return Expectation(refusal: refusal, reason: Array((refusal?.rawValue ?? "").utf8))
        }
    }

    /// Opens all connections, and gets a stock of challenges if requests need them.
    func open() {
        do throws(SocketError) {
            let alarm = try Alarm(on: loop)
            // A cycle on purpose: event loop and alarm live as long as the process.
            alarm.rang = { [self] in wake() }
            self.alarm = alarm
        } catch {
            return tell(.failed("\(error)"))
        }
        if plan.options.mix.share(of: .unknown) > 0 {
            let challenge = [UInt8](
                repeating: UInt8(ascii: "A"),
                count: !needsChallenge ? 0 : RequestTemplate.challengeCount
            )
            strangers = (0..<16).map { index in
                signer.signAsStranger(index, challenge: challenge, into: &proof)
                return proof
            }
        }
        if needsChallenge { challengesWanted = connectionCount + Self.challengeStock }
        for _ in 0..<connectionCount { openConnection() }
        checkReadiness()
    }

    /// Below this number of challenges the loop asks for more, while connections wait.
    static let challengeStock = 32

    /// Begins at a moment of the monotonic clock.
    func start(at moment: UInt64, _ preSigned: PreSigned, until: UInt64) {
        self.preSigned = preSigned
        preSignedUntil = until
        startAt = moment
        isIssuing = true
        alarm?.set(nanoseconds: moment)
    }

    /// Called when the next request is due, or a delayed call.
    private func wake() {
        if !isReady || challengesWanted > 0 { callForChallenges() }
        pump()
    }

    /// Sends no more requests, and waits for the answers.
    func stop() {
        isIssuing = false
        finishIfDone()
    }

    /// The counts since the last call; also reopens connections.
    func takeInterval() -> Interval {
        reopen()
        pump()
        var taken = interval
        taken.backlog = backlog(at: MonotonicClock.nanoseconds)
        interval = Interval()
        return taken
    }

    func results() -> LoopResults {
        isIssuing = false
        for connection in idle { connection.close() }
        idle.removeAll()
        caller?.close()
        measurements.signedCount = signer.count + openingSigner.count + sessions.signedCount
        measurements.signingNanoseconds =
            signer.nanoseconds + openingSigner.nanoseconds + sessions.signingNanoseconds
        return LoopResults(measurements: measurements, endCounter: devices.endCounter)
    }

    func finishIfDone() {
        guard !isFinished, !isIssuing, underWay == 0, startAt > 0 else { return }
        isFinished = true
        tell(.finished)
    }

    /// Requests that are due and were not sent.
    func backlog(at now: UInt64) -> UInt64 {
        guard isIssuing, let rate = pacing.rate, now > startAt else { return 0 }
        let passed = Double(min(now - startAt, pacing.end)) / 1e9
        let due = UInt64(passed * rate / Double(loopCount))
        return min(due, countLimit) - min(min(due, countLimit), issued)
    }
}
