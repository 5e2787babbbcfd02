import Foundation

/// Keeps the one key: enrols it when it is asked for, once for all who ask, and forgets it when it
/// is refused. ``EnrolmentRun`` does the enrolling.
actor Enroller {
    private let parts: EnrolmentRun.Parts
    private var context: Data?
    /// The enrolled key, as last known.
    private var key: String?
    /// Until when nothing is tried, as last known.
    private var hold: EnrolmentHold?
    private var running: (run: EnrolmentRun, work: SharedWork<KeyOutcome>)?
    /// Changes the record because of a user. The one that failed last stays, to be tried again.
    private var change: (kind: UserChange, work: Task<Bool?, Never>)?
    /// When the record was read last because of what other processes may have written.
    private var looked = Date.distantPast
    private var isClosed = false

    /// The time between two such looks, in seconds.
    static let lookEvery: Double = 10
    /// How long a request that waits for no enrolment waits for the record, in seconds.
    static let readingTime: Double = 1

    init(
        _ configuration: PortcullisConfiguration,
        service: TimedService,
        calls: GatewayCalls,
        records: RecordKeeper,
        events: EventHub
    ) {
        parts = EnrolmentRun.Parts(
            configuration,
            service: service,
            calls: calls,
            records: records,
            events: events
        )
        context = configuration.context
    }

    private var configuration: PortcullisConfiguration { parts.configuration }
    private var now: Date { configuration.clock.now }

    /// Whether the device counts as one that can't attest.
    nonisolated var isDeviceBroken: Bool { parts.records.isDeviceBroken.withLock { $0 } }

    // MARK: Asking

    /// The enrolled key. Without one, an enrolment begins or goes on, and is waited for; at least
    /// until it is known whether a key is enrolled.
    func keyID(within seconds: Double) async -> KeyOutcome {
        if !isClosed { await look() }
        guard !isClosed else { return .none(.closed) }
        if let key { return .key(key) }
        guard parts.service.service.isSupported else { return .none(.unsupported) }
        if let hold, hold.until > now { return .none(.enrolmentHeld(hold)) }
        let time = now.addingTimeInterval(seconds)
        let work = enrolment()
        if seconds < Self.readingTime, let reading = running?.run.reading {
            let end = now.addingTimeInterval(Self.readingTime)
            _ = await reading.value(until: end, by: configuration.clock)
        }
        return await work.value(until: time, by: configuration.clock) ?? .none(.enrolling)
    }

    /// Forgets a key that was refused, unless another one has taken its place.
    func forget(_ keyID: String, reason: String) async {
        if key == keyID { key = nil }
        switch await parts.forget(keyID, reason: reason) {
        case true?: hold = nil
        case false?: break
        // The next enrolment forgets it.
        case nil: parts.events.send(.storeFailed)
        }
    }

    /// Forgets a key that the device signs nothing with, where ``EnrolmentMachine`` allows it.
    ///
    /// - Returns: whether it did.
    func replaceUnfit(_ keyID: String, reason: String) async -> Bool {
        guard let record = await parts.records.read()?.record else { return false }
        var machine = EnrolmentMachine(record, limits: configuration.limits)
        guard machine.mayReplaceUnfit(now: now) else { return false }
        await forget(keyID, reason: reason)
        return true
    }

    /// Forgets whatever key there is, and delays too. An enrolment that is under way ends, and
    /// nothing of it is kept but what Apple counts. Where the next key has no context, one that no
    /// other may replace today stays in the record.
    ///
    /// - Returns: whether the key was forgotten, or will be.
    func reset(context: Data?) async -> Bool {
        (self.context, key, hold) = (context, nil, nil)
        stop(with: .enrolling)
        return await changed(.reset) ?? true
    }

    /// The next key has no context. An enrolment that has one ends.
    func signOut() async {
        if context != nil {
            (context, hold) = (nil, nil)
            stop(with: .enrolling)
        }
        _ = await changed(.signOut)
    }

    /// Whether a day allows another key in the place of the one that is there, if any.
    func mayReplaceKey() async -> Bool {
        guard let record = await parts.records.read()?.record else { return true }
        var machine = EnrolmentMachine(record, limits: configuration.limits)
        return machine.mayReplaceKey(now: now)
    }

    /// Ends what waits; a lease that is held is worth nothing from now on.
    func close() {
        isClosed = true
        parts.holder.retire()
        stop(with: .closed)
    }

    // MARK: One enrolment for all

    private func enrolment() -> SharedWork<KeyOutcome> {
        if let running { return running.work }
        let work = SharedWork<KeyOutcome>()
        begin(work)
        return work
    }

    private func begin(_ work: SharedWork<KeyOutcome>) {
        let run = EnrolmentRun(parts, context: context)
        running = (run, work)
        Task {
            // A record that could not be changed must not bring the old key back.
            guard await isChanged() else {
                parts.events.send(.storeFailed)
                return ended(run, .none(.storeUnavailable))
            }
            ended(run, await run.outcome())
        }
    }

    private func ended(_ run: EnrolmentRun, _ outcome: KeyOutcome) {
        defer { run.reading.end(with: ()) }
        // Those who waited for a run that was stopped were told when it was stopped.
        guard let (current, work) = running, current === run else { return }
        switch outcome {
        case .key(let keyID):
            // It was refused while this run ended.
            if parts.isRefused(keyID) { return begin(work) }
            (key, hold, looked) = (keyID, nil, now)
        case .none(.enrolmentHeld(let hold)): (self.hold, looked) = (hold, now)
        case .none: break
        }
        running = nil
        work.end(with: outcome)
    }

    /// Ends an enrolment that is under way, and tells those who wait for it why.
    private func stop(with absence: SentProof.Absence) {
        guard let (run, work) = running else { return }
        running = nil
        run.stop()
        work.end(with: .none(absence))
    }

    // MARK: Users

    /// What a user did that changes the record.
    private enum UserChange { case reset, signOut }

    /// Changes the record, now or before the next enrolment.
    ///
    /// - Returns: whether its key was forgotten; `nil` where the store failed.
    private func changed(_ kind: UserChange) async -> Bool? {
        // A reset whose store failed stays due.
        let work = begin(change?.kind == .reset ? .reset : kind)
        let isForgotten = await work.value
        if isForgotten == nil { parts.events.send(.storeFailed) }
        if isForgotten != nil, change?.work == work { change = nil }
        return isForgotten
    }

    private func begin(_ kind: UserChange) -> Task<Bool?, Never> {
        let keepsLast = context == nil
        let work = Task { [parts] () -> Bool? in
            var isForgotten = false
            let isChanged = await parts.records.change { record in
                var machine = EnrolmentMachine(record, limits: parts.configuration.limits)
                switch kind {
                case .reset:
                    let isRefused = record.keyID.map(parts.isRefused) ?? false
                    let now = parts.configuration.clock.now
                    isForgotten = machine.reset(keepsLast: keepsLast && !isRefused, now: now)
                case .signOut: machine.signedOut()
                }
                return machine.record
            }
            return isChanged == nil ? nil : isForgotten
        }
        change = (kind, work)
        return work
    }

    /// Whether nothing of a user's is due any more. What the store failed at is tried once more.
    private func isChanged() async -> Bool {
        guard let (kind, work) = change else { return true }
        var last = work
        if await work.value == nil {
            guard change?.work == work else { return false }
            last = begin(kind)
        }
        guard await last.value != nil else { return false }
        if change?.work == last { change = nil }
        return true
    }

    // MARK: Other processes

    /// Reads, now and then, what other processes that share the store have written: a key in the
    /// place of this one, another delay, or the end of one.
    private func look() async {
        let age = now.timeIntervalSince(looked)
        // Less than zero after the clock was set back.
        guard key != nil || hold != nil, age < 0 || age >= Self.lookEvery else { return }
        looked = now
        let (key, hold, context) = (key, hold, context)
        guard let record = await parts.records.read()?.record, running == nil,
            key == self.key, hold == self.hold, context == self.context
        else { return }
        switch record.phase {
        case .enrolled(let other):
            if !parts.isRefused(other) { (self.key, self.hold) = (other, nil) }
        case .generated(let other, _), .attested(let other, _, _):
            // Its own enrolment may be further than the store, which failed.
            if other != key { self.key = nil }
            takeHold(of: record)
        case .none:
            if key == nil { takeHold(of: record) }
        }
    }

    /// Takes over what the record says of delays. A context that is unfit is this session's own,
    /// and no record tells of it.
    private func takeHold(of record: EnrolmentRecord) {
        guard hold?.cause != .contextUnfit else { return }
        hold = EnrolmentMachine(record, limits: configuration.limits).hold(now: now)
    }
}
