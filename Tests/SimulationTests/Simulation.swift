import AppAttest
import KeyStore
import RequestBinding
import Synchronization
import TestSupport
import Tokens

/// A world of gateways, devices, a store and a clock on one thread. A seed decides each step, the
/// fate of each commit and of each message between two processes, so a failure can be played again.
final class Simulation {
    /// What a run is about.
    struct Plan {
        var steps = 120
        /// Gateways at once. More than one need a store that decides.
        var gateways = 1
        /// Whether a process can hand over to another.
        var upgrades = true
        /// What is done wrong on purpose: the promises must not hold then.
        var mutation: Mutation?
    }

    /// One part that is left out, each for a promise that then fails.
    enum Mutation: CaseIterable {
        /// The store answers before it has written.
        case lyingStore
        /// A request goes to the origin before its commit.
        case noWait
        /// The secret of challenges outlives the process; what was spent does not.
        case oldSecret
        /// A successor begins with the memory that its predecessor had some time before.
        case staleMemory
        /// Nobody tells the gateway of a revocation.
        case silentRevocation
        /// A request that waited for the disk is not compared with the revocations since.
        case noLateCheck
        /// An app is told of its enrolment before the commit.
        case earlyEnrolment
    }

    /// A moment of the simulation.
    private final class Clock: Sendable {
        private let start = ContinuousClock.now
        private let second = Atomic<Int64>(1_700_000_000)

        var now: Int64 { second.load(ordering: .relaxed) }
        var instant: ContinuousClock.Instant { start + .seconds(now - 1_700_000_000) }
        func advance(by seconds: Int64) { second.wrappingAdd(seconds, ordering: .relaxed) }
    }

    /// A request whose commit has not ended.
    private struct Waiting {
        let request: SignedRequest
        let ticket: CommitTicket
        let gateway: SimulatedGateway
    }

    private let plan: Plan
    private let lab: any StoreLab
    private let clock = Clock()
    /// Decides steps; on this thread alone.
    private var dice: SeededGenerator
    private let fates: SimulatedFates

    private var gateways: [SimulatedGateway] = []
    /// The gateways that hand over, each with its line to the successor.
    private var lines: [ObjectIdentifier: SimulatedLine] = [:]
    private var waiting: [Waiting] = []
    private var requests: [SignedRequest] = []
    private var counters: [KeyID: UInt32] = [:]
    private var openSessions: [(keyID: KeyID, id: [UInt8], next: UInt64)] = []
    private var records = KeyRecord.simulated[...]
    private var memoryBefore = SimulatedGateway.Memory()
    private(set) var startCount = 0
    private(set) var handOverCount = 0
    private(set) var ledger: PromiseLedger
    /// What has happened, a line each.
    private(set) var trace: [String] = []

    private static let knowledgeLifetime: Int64 = 10

    init(seed: UInt64, _ plan: Plan, on lab: any StoreLab) throws {
        (self.plan, self.lab) = (plan, lab)
        dice = SeededGenerator(seed: seed)
        fates = SimulatedFates(seed: ~seed, lies: plan.mutation == .lyingStore)
        ledger = PromiseLedger(knowledgeLifetime: Self.knowledgeLifetime)
        for _ in 0..<plan.gateways { try start() }
        for _ in 0..<3 { enrol() }
        fates.calm(false)
    }

    private var now: Int64 { clock.now }

    // MARK: Steps

    /// Plays the run.
    ///
    /// - Throws: the promise that was broken.
    func run() throws {
        for _ in 0..<plan.steps { try step() }
        try commitAll()
        try ledger.check(ledger.enrolled, lab.stored)
    }

    private func step() throws {
        switch Int.random(in: 0..<100, using: &dice) {
        case 0..<34: try send(sign())
        case 34..<52: if let old = requests.randomElement(using: &dice) { try send(old) }
        case 52..<66: commit()
        case 66..<69: enrol()
        case 69..<71: try revoke()
        case 71..<76: openSession()
        case 76..<86: try useSession()
        case 86..<90: tick()
        case 90..<94: kill()
        case 94..<97: if plan.upgrades { try upgrade() } else { tick() }
        default: try endPredecessors()
        }
        try answerWaiting()
        try bury()
    }

    private func note(_ line: String) { trace.append("\(now % 100_000) \(line)") }

    private func chance(_ percent: Int) -> Bool {
        Int.random(in: 0..<100, using: &dice) < percent
    }

    private func anyGateway() -> SimulatedGateway? { gateways.randomElement(using: &dice) }

    private func tick() {
        if plan.mutation == .staleMemory { memoryBefore = gateways.first?.memory ?? .init() }
        clock.advance(by: Int64.random(in: 1...200, using: &dice))
        note("the clock goes on")
    }

    // MARK: Requests

    /// A device signs a request, for a rule that waits for the disk or for one with a challenge.
    private func sign() -> SignedRequest? {
        guard
            let keyID = counters.keys.sorted(by: { $0.bytes.lexicographicallyPrecedes($1.bytes) })
                .randomElement(using: &dice), let gateway = anyGateway()
        else { return nil }
        counters[keyID, default: 0] += 1
        let counter = SignCounter(rawValue: counters[keyID] ?? 0)
        let rule: StoreCounterRule = chance(50) ? .strict : .window(64)
        let challenge = chance(50) ? gateway.decider.issue(.assertion, now: now) : nil
        return add(.assertion(counter, rule, challenge: challenge), keyID)
    }

    private func add(_ proof: SignedRequest.Proof, _ keyID: KeyID) -> SignedRequest {
        let request = SignedRequest(number: requests.count, keyID: keyID, proof: proof)
        requests.append(request)
        return request
    }

    private func send(_ request: SignedRequest?) throws {
        guard let request, let gateway = anyGateway() else { return }
        let answer = gateway.judge(request, now: now)
        note("request \(request.number) to \(name(gateway)): \(answer)")
        guard !gateway.store.isDead else { return }
        // Its look-up of the key may have made a commit.
        defer { settleSuccessors() }
        switch answer {
        case .admitted: try execute(request)
        case .refused: ledger.refusedCount += 1
        case .waits where plan.mutation == .noWait: try execute(request)
        case .waits(let ticket):
            waiting.append(Waiting(request: request, ticket: ticket, gateway: gateway))
        }
    }

    private func execute(_ request: SignedRequest) throws {
        note("request \(request.number) is executed")
        try ledger.execute(request, now: now)
        try ledger.check([request.keyID], lab.stored)
    }

    /// A successor's writer is started by a question, on its own queue: this waits for it.
    private func settleSuccessors() {
        guard !lines.isEmpty else { return }
        for gateway in gateways where lines[ObjectIdentifier(gateway)] == nil { gateway.commit() }
    }

    private func commit() {
        guard let gateway = anyGateway() else { return }
        note("\(name(gateway)) commits")
        gateway.commit()
    }

    private func commitAll() throws {
        for gateway in gateways { gateway.commit() }
        try answerWaiting()
    }

    private func answerWaiting() throws {
        var left: [Waiting] = []
        var admitted: [SignedRequest] = []
        for one in waiting where !one.gateway.store.isDead {
            let isLate = plan.mutation != .noLateCheck
            switch one.gateway.decision(one.ticket, of: one.request.keyID, isLate: isLate) {
            case .admitted: admitted.append(one.request)
            case .refused: ledger.refusedCount += 1
            case .waits, nil: left.append(one)
            }
        }
        waiting = left
        for request in admitted { try execute(request) }
    }

    // MARK: Keys and sessions

    private func enrol() {
        guard let record = records.popFirst(), let gateway = anyGateway() else { return }
        let isTold = gateway.enrol(record)
        note("enrolment at \(name(gateway)): \(isTold)")
        counters[record.keyID] = 0
        if isTold || plan.mutation == .earlyEnrolment { ledger.enrol(record.keyID) }
    }

    private func revoke() throws {
        let active = ledger.enrolled.subtracting(ledger.revoked.keys)
            .sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        guard active.count > 1, let keyID = active.randomElement(using: &dice) else { return }
        // In a fleet one gateway hears of it, and the others may not.
        let hearers = plan.gateways == 1 ? gateways : [anyGateway()].compactMap(\.self)
        fates.calm(true)
        defer { fates.calm(false) }
        try lab.set(.revoked(at: now), of: keyID)
        for gateway in hearers { gateway.store.announce() }
        ledger.revoke(keyID, now: now)
        note("a key is revoked")
    }

    private func openSession() {
        guard let gateway = anyGateway(),
            let keyID = ledger.enrolled.sorted(by: { $0.bytes.lexicographicallyPrecedes($1.bytes) })
                .randomElement(using: &dice)
        else { return }
        let opened = gateway.decider.openSession(keyID, .simulated, now: now)
        guard !gateway.store.isDead else { return }
        openSessions.append((keyID, opened.id, 1))
        note("a session at \(name(gateway))")
    }

    private func useSession() throws {
        guard let place = openSessions.indices.randomElement(using: &dice),
            let number = SequenceNumber(openSessions[place].next)
        else { return }
        openSessions[place].next += 1
        let session = openSessions[place]
        try send(add(.session(id: session.id, number), session.keyID))
    }

    // MARK: Processes

    private func start(_ memory: SimulatedGateway.Memory = .init()) throws {
        var memory = memory
        if plan.mutation == .oldSecret, memory.challenges == nil {
            memory.secret = Array(repeating: 7, count: 32)
        }
        if plan.gateways > 1 { memory.shared = [.simulated] }
        startCount += 1
        memory.epoch = plan.mutation == .oldSecret ? 1 : UInt64(startCount)
        gateways.append(try gateway(memory))
    }

    private func gateway(_ memory: SimulatedGateway.Memory) throws -> SimulatedGateway {
        let lifetime = plan.gateways > 1 ? Duration.seconds(Self.knowledgeLifetime) : nil
        let store = SimulatedStore(try lab.open(), knowledgeLifetime: lifetime) { [fates] in
            fates.ofCommit
        }
        if plan.mutation == .silentRevocation { store.hearsNothing() }
        return try SimulatedGateway(store, clock: { [clock] in clock.instant }, memory: memory)
    }

    private func name(_ gateway: SimulatedGateway) -> String {
        let place = gateways.firstIndex { $0 === gateway }.map(String.init) ?? "?"
        return lines[ObjectIdentifier(gateway)] == nil ? place : place + " (predecessor)"
    }

    private func kill() {
        guard let gateway = anyGateway() else { return }
        note("\(name(gateway)) is killed")
        gateway.store.kill()
    }

    /// Starts a process for each that has died. A predecessor without its successor ends too.
    private func bury() throws {
        let dead = gateways.filter(\.store.isDead)
        guard !dead.isEmpty else { return }
        let lost = gateways.filter { lines[ObjectIdentifier($0)]?.isCut ?? false }
        for gateway in lost { gateway.store.kill() }
        gateways.removeAll(where: \.store.isDead)
        for gateway in dead + lost { lines[ObjectIdentifier(gateway)] = nil }
        waiting.removeAll { $0.gateway.store.isDead }
        let isCurrent = gateways.filter { lines[ObjectIdentifier($0)] == nil }.count
        guard isCurrent < plan.gateways else { return }
        try lab.crash()
        try ledger.check(ledger.enrolled, lab.stored)
        memoryBefore = .init()
        for _ in isCurrent..<plan.gateways { try start() }
        note("started again")
    }

    /// A process hands over to a new one; either may die on the way.
    private func upgrade() throws {
        guard lines.isEmpty, let old = gateways.first, plan.gateways == 1 else { return }
        do throws(JournalError) {
            _ = try old.keys.stopWriting()
        } catch {
            note("the hand-over fails: a change can't be written")
            if !old.store.isDead { try old.keys.goOn() }
            return
        }
        try answerWaiting()
        let given =
            plan.mutation == .staleMemory && memoryBefore.challenges != nil
            ? memoryBefore : old.memory
        let next = try gateway(given)
        guard !chance(20) else {
            note("the successor dies before GO")
            next.store.kill()
            return try old.keys.goOn()
        }
        let line = SimulatedLine(to: next) { [fates] in fates.ofMessage }
        old.decider.handOver(to: line)
        lines[ObjectIdentifier(old)] = line
        gateways.append(next)
        handOverCount += 1
        note("handed over")
    }

    private func endPredecessors() throws {
        try commitAll()
        for gateway in gateways where lines[ObjectIdentifier(gateway)] != nil {
            note("the predecessor ends")
            gateway.store.kill()
        }
    }
}

extension Simulation {
    /// Plays the run; every other error than a broken promise is a defect of the simulation.
    func runForPromises() throws(PromiseLedger.Broken) {
        do {
            try run()
        } catch let broken as PromiseLedger.Broken {
            throw broken
        } catch {
            preconditionFailure("Simulation: \(error)")
        }
    }
}

extension KeyRecord {
    /// Made once: a public key takes some milliseconds.
    fileprivate static let simulated = (1...24).map { sample($0) }
}

extension SharedSecret {
    /// Of the fleet, for the whole run.
    fileprivate static let simulated = SharedSecret(
        number: 1,
        bytes: Array(repeating: 9, count: 32),
        usedFrom: 0,
        goodUntil: 1 << 40
    )
}

extension VerifiedEvidence {
    /// The evidence that opens a session.
    fileprivate static let simulated = VerifiedEvidence(
        app: AppIDHash(appID: "ABCDE12345.com.example.shop"),
        counter: SignCounter(rawValue: 1)
    )
}
