import ConfigurationReading
import Cryptography
import Dispatch
import Logging
import Proxy
import Rules
import Services
import Verification

/// Guards: rules that fall back to `observe` by themselves. Each second the event loops hand over
/// their counts. A fall is an order like an operator's, so it is saved, audited, and stays.
final class Guards: Sendable {
    /// The interval of asking the event loops: each second.
    private static let pace = DispatchTimeInterval.seconds(1)
    /// The most hooks that run or wait for a running one; further ones are not run.
    private static let hooksMax = 8

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
    }

    private let plane: ControlPlane
    private let rollouts: Rollouts
    /// The queue on which hooks are waited for, one after the other.
    private let hooks = DispatchQueue(label: "portcullis.hook")
    private let state: QueueBound<State>

    init(_ plane: ControlPlane, _ rollouts: Rollouts) {
        self.plane = plane
        self.rollouts = rollouts
        state = QueueBound(State(), on: plane.queue)
    }

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
    func forget(_ rule: String?) {
        guard let rule else { return }
        state.value.watches[rule]?.forget()
    }

    /// The state of a rule's guard, for operators; `nil` where it has none.
    func facts(of rule: Rule) -> GuardFacts? {
        state.value.watches[rule.id].map { watch in
            let found = watch.finding(now: ControlPlane.monotonicSeconds)
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
            state.value.unanswered = plane.loops.count
            for loop in plane.loops {
                loop.takeGuardCounts { [self] counts in
                    plane.perform { [self] in take(counts, number) }
                }
            }
        }
        plane.perform(after: Self.pace) { self.ask(number) }
    }

    private func take(_ counts: [GuardCounts.Entry], _ number: Int) {
        guard number == state.value.number else { return }
        state.value.unanswered -= 1
        let now = ControlPlane.monotonicSeconds
        for entry in counts { state.value.watches[entry.rule]?.add(entry, now: now) }
        for entry in counts {
            guard let found = state.value.watches[entry.rule]?.fall(now: now) else { continue }
            fall(entry.rule, found)
        }
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
            Rollouts.Waiting(call: call, by: RolloutNote.guardName) { [self] result in
                plane.perform { [self] in ordered(id, why, result) }
            }
        )
    }

    private func ordered(_ id: String, _ why: String, _ result: RolloutResult) {
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
