import ConfigurationReading
import Cryptography
import Dispatch
import Encodings
import Glibc
import KeyStore
import Logging
import PostgreSQLKeyStore
import Proxy
import Rules
import Services
import Telemetry
import Verification

/// The event loops as guards see them.
protocol GuardedLoops: Sendable {
    var loopCount: Int { get }
    /// Has each event loop hand over its counts of rules with a guard.
    func takeGuardCounts(_ each: @escaping @Sendable ([GuardCounts.Entry]) -> Void)
    /// Has each event loop count installs by another hash, from the beginning.
    func hashInstalls(by hash: InstallHash)
}

extension ControlPlane: GuardedLoops {
    var loopCount: Int { loops.count }

    func takeGuardCounts(_ each: @escaping @Sendable ([GuardCounts.Entry]) -> Void) {
        for loop in loops { loop.takeGuardCounts(each) }
    }

    func hashInstalls(by hash: InstallHash) {
        for loop in loops { loop.hashInstalls(by: hash) }
    }
}

/// Guards: rules that fall back to `observe` by themselves. Each second the event loops hand over
/// their counts. A fall is an order like an operator's, so it is saved, audited, and stays.
///
/// In a fleet each gateway counts all installs: its own, and those that the others have written
/// into the database. Whichever gateway sees first that a guard has fallen writes the order.
final class Guards: Sendable {
    /// The interval of asking the event loops: each second.
    private static let pace = DispatchTimeInterval.seconds(1)
    /// The most hooks that run or wait for a running one; further ones are not run.
    private static let hooksMax = 8
    /// The most counts that are written for the other gateways at once, at some 3 KiB each.
    private static let countsMax = 64

    private struct State {
        /// By the rule's id.
        var watches: [String: RolloutGuard] = [:]
        /// The number of falls of each rule since the start.
        var falls: [String: UInt64] = [:]
        /// Counts the starts; rounds of an older start end.
        var number = 0
        /// Event loops that have not answered yet. They are asked again when all have.
        var unanswered = 0
        var hooks = 0
        /// The version of the orders with which counting began, by the rule's id.
        var since: [String: Int64] = [:]
        /// Seconds to add to the monotonic clock, so that all gateways have the same slots.
        var clockOffset: Int64
        /// ``FleetReading/now`` of the last reading; 0 before it.
        var readAt: Int64 = 0
        var hasSecret = false
    }

    private let plane: ControlPlane
    private let rollouts: any OrderTaking
    private let loops: any GuardedLoops
    /// The queue on which hooks are waited for, one after the other.
    private let hooks = DispatchQueue(label: "portcullis.hook")
    private let state: QueueBound<State>

    init(_ plane: ControlPlane, _ rollouts: any OrderTaking, loops: any GuardedLoops) {
        (self.plane, self.rollouts, self.loops) = (plane, rollouts, loops)
        let offset = Int64(time(nil)) - ControlPlane.monotonicSeconds
        state = QueueBound(State(clockOffset: offset), on: plane.queue)
    }

    /// Second of the clock of the slots: Unix time in a fleet, by the clock of the database.
    private var now: Int64 { ControlPlane.monotonicSeconds + state.value.clockOffset }

    /// Takes the guards of the configuration. A guard with unchanged settings continues counting.
    func start() {
        let before = state.value.watches
        state.value.watches = [:]
        for rule in plane.configuration.fileRules.rules {
            guard let fallback = rule.demands.fallback else { continue }
            let known = before[rule.id].flatMap { $0.rule == fallback ? $0 : nil }
            state.value.watches[rule.id] = known ?? RolloutGuard(fallback)
        }
        state.value.number += 1
        state.value.unanswered = 0
        ask(state.value.number)
    }

    /// An order by an operator or a guard is in force: earlier counts are dropped.
    ///
    /// - version: of the fleet's orders; 0 without a fleet.
    func forget(_ rule: String?, by version: Int64) {
        guard let rule else { return }
        state.value.watches[rule]?.forget()
        guard version > 0, state.value.watches[rule] != nil else { return }
        state.value.since[rule] = max(version, state.value.since[rule] ?? 0)
    }

    /// The state of a rule's guard, for operators; `nil` where it has none.
    func facts(of rule: Rule) -> GuardFacts? {
        state.value.watches[rule.id].map { watch in
            let found = watch.finding(now: now)
            return GuardFacts(
                text: watch.rule.text,
                installs: found.installs,
                refused: found.refused,
                falls: state.value.falls[rule.id] ?? 0,
                hasFallen: rollouts.orders.standing(of: rule).source == .guarded
            )
        }
    }

    private func ask(_ number: Int) {
        guard number == state.value.number, !state.value.watches.isEmpty, !plane.isEnding else {
            return
        }
        if state.value.unanswered == 0 {
            state.value.unanswered = loops.loopCount
            loops.takeGuardCounts { [self] counts in
                plane.perform { [self] in take(counts, number) }
            }
        }
        plane.perform(after: Self.pace) { self.ask(number) }
    }

    private func take(_ counts: [GuardCounts.Entry], _ number: Int) {
        guard number == state.value.number else { return }
        state.value.unanswered -= 1
        let now = now
        for entry in counts { state.value.watches[entry.rule]?.add(entry, now: now) }
        examine(counts.map(\.rule))
    }

    /// Has the guards fall that have to.
    private func examine(_ rules: [String]) {
        let now = now
        for rule in rules {
            guard let found = state.value.watches[rule]?.fall(now: now) else { continue }
            fall(rule, found)
        }
    }

    // MARK: A fleet

    /// What the other gateways don't have, and what this one asks of them.
    func exchange() -> FleetExchange {
        var exchange = FleetExchange()
        exchange.readAt = state.value.readAt
        exchange.wantsSecret = !state.value.hasSecret
        // Under a key of this process alone, the counts would be those of other installs.
        guard state.value.hasSecret else { return exchange }
        for rule in state.value.watches.keys.shuffled() {
            guard exchange.counts.count < Self.countsMax else { break }
            let since = state.value.since[rule] ?? 0
            let span = state.value.watches[rule]?.rule.window.components.seconds ?? 0
            exchange.counts += (state.value.watches[rule]?.takeUnsent() ?? []).map { slot, counts in
                FleetCount(
                    rule: rule,
                    slot: slot,
                    span: span,
                    since: since,
                    sketches: FleetCount.Sketches(
                        passed: counts.passed.bytes,
                        refused: counts.refused.bytes,
                        broken: counts.broken.bytes
                    )
                )
            }
        }
        return exchange
    }

    func exchanged(_ sent: FleetExchange, _ result: Result<FleetReading, JournalError>) {
        guard case .success(let reading) = result else {
            for count in sent.counts {
                state.value.watches[count.rule]?.sendAgain(slot: count.slot)
            }
            return
        }
        state.value.readAt = reading.now
        let offset = reading.now - ControlPlane.monotonicSeconds
        // A second more or less is the time of the answer.
        if abs(offset - state.value.clockOffset) > 2 { state.value.clockOffset = offset }
        if let secret = reading.secret { take(secret) }
        guard state.value.hasSecret else { return }
        var rules: Set<String> = []
        for count in reading.counts where add(count) { rules.insert(count.rule) }
        examine(Array(rules))
    }

    /// Adds the counts of another gateway.
    ///
    /// - Returns: whether they count: not where they began before the last order about the rule.
    private func add(_ count: FleetCount) -> Bool {
        guard let watch = state.value.watches[count.rule],
            watch.rule.window.components.seconds == count.span,
            let passed = InstallSketch(bytes: count.sketches.passed),
            let refused = InstallSketch(bytes: count.sketches.refused),
            let broken = InstallSketch(bytes: count.sketches.broken)
        else { return false }
        let since = state.value.since[count.rule] ?? 0
        guard count.since >= since else { return false }
        // This process did not see the last order about the rule.
        if count.since > since { forget(count.rule, by: count.since) }
        let entry = GuardCounts.Entry(
            rule: count.rule,
            passed: passed,
            refused: refused,
            broken: broken
        )
        let now = now
        state.value.watches[count.rule]?.add(entry, ofSlot: count.slot, now: now)
        return true
    }

    /// Counts from now on by the hash of the fleet, for reports too.
    private func take(_ secret: [UInt8]) {
        guard secret.count == 32 else { return }
        let hash = InstallHash(key: (secret.span.word(at: 0), secret.span.word(at: 8)))
        loops.hashInstalls(by: hash)
        for rule in state.value.watches.keys { state.value.watches[rule]?.forget() }
        state.value.hasSecret = true
        // Counts that are on their way are by the hash of this process.
        state.value.number += 1
        state.value.unanswered = 0
        ask(state.value.number)
    }

    private func fall(_ id: String, _ found: RolloutGuard.Finding) {
        // An order that is being saved may change the finding. The counts are kept meanwhile.
        guard !rollouts.isBusy, let guardRule = state.value.watches[id]?.rule,
            let rule = plane.configuration.rules.rules.first(where: { $0.id == id }),
            rule.mode == .enforce
        else { return }
        state.value.watches[id]?.forget()
        let share = rule.rollout.share(at: UnixTime(seconds: plane.wallSeconds))
        let why = "\(found.text) at \(share.text)"
        plane.log.error(
            """
            the guard of rule \(id) has fallen: \(why), more than \(guardRule.refused.text); the \
            rule observes until it is told otherwise; next: find the reason in `portcullis why` \
            and the metrics, then `portcullis rollout \(id)` with a share, or with file; more: \
            portcullis help PortcullisGuardFallen
            """
        )
        let call = RolloutRequest.Call(.order(.observe, rule: id), why: why)
        rollouts.add(
            WaitingOrder(call: call, by: RolloutNote.guardName) { [self] result in
                plane.perform { [self] in ordered(id, why: why, result: result) }
            }
        )
    }

    private func ordered(_ id: String, why: String, result: RolloutResult) {
        switch result {
        case .changed:
            state.value.falls[id, default: 0] += 1
            runHook(id, why)
        // Another gateway was faster: the fall is one order.
        case .stale: break
        case .impossible, .unsaved, .upgrading:
            plane.log.error("rule \(id) goes on as before: \(result)")
        }
    }

    private func runHook(_ id: String, _ why: String) {
        let settings = plane.configuration.hooks
        guard !settings.onGuard.isEmpty else { return }
        guard state.value.hooks < Self.hooksMax else {
            return plane.log.error(
                "no hook is run for rule \(id): \(state.value.hooks) wait already"
            )
        }
        let run = HookRun(
            settings.onGuard,
            [
                "PORTCULLIS_HOOK": "guard", "PORTCULLIS_RULE": id, "PORTCULLIS_REASON": why,
                "PORTCULLIS_AT": UnixTime(seconds: plane.wallSeconds).iso8601,
            ],
            timeout: settings.timeout
        )
        state.value.hooks += 1
        hooks.async { [self] in
            let fault = run.run()
            plane.perform { [self] in
                state.value.hooks -= 1
                guard let fault else { return }
                plane.log.error("hooks.guard for rule \(id), \(settings.onGuard[0]): \(fault)")
            }
        }
    }
}
