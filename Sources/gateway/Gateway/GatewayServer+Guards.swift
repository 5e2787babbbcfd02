import ConfigurationReading
import Cryptography
import Dispatch
import Logging
import Proxy
import Rules
import Services
import Verification

// Guards: rules that fall back to `observe` by themselves. Each second the lanes hand over what
// they have counted. A fall is an order like an operator's, so it is saved, audited, and stays.
extension GatewayServer {
    /// The guards of the rules as they are served.
    struct Guards {
        /// How often the lanes are asked: each second.
        static let pace = DispatchTimeInterval.seconds(1)
        /// Hooks that run or wait for one that does; more are not run.
        static let hooksMax = 8

        /// By the rule's id.
        var watches: [String: RolloutGuard] = [:]
        /// How often each has fallen since the start.
        var falls: [String: UInt64] = [:]
        /// Counts the starts; the rounds of an older one end.
        var number = 0
        /// Lanes that have not answered yet. They are asked again when all have.
        var unanswered = 0
        var hooks = 0
        /// Where hooks are waited for, one after the other.
        let queue = DispatchQueue(label: "portcullis.hook")
    }

    /// Takes the guards of the configuration. One whose settings are as they were goes on counting.
    func startGuards() {
        dispatchPrecondition(condition: .onQueue(control))
        let before = guards.watches
        guards.watches = [:]
        for rule in configuration.fileRules.rules {
            guard let fallback = rule.demands.fallback else { continue }
            let known = before[rule.id].flatMap { $0.rule == fallback ? $0 : nil }
            guards.watches[rule.id] = known ?? RolloutGuard(fallback)
        }
        guards.number += 1
        guards.unanswered = 0
        askGuards(guards.number)
    }

    private func askGuards(_ number: Int) {
        guard number == guards.number, !guards.watches.isEmpty, !isEnding else { return }
        if guards.unanswered == 0 {
            guards.unanswered = units.count
            for unit in units {
                unit.takeGuardCounts { [self] counts in
                    control.async { [self] in take(counts, number) }
                }
            }
        }
        control.asyncAfter(deadline: .now() + Guards.pace) { self.askGuards(number) }
    }

    private func take(_ counts: [GuardCounts.Entry], _ number: Int) {
        guard number == guards.number else { return }
        guards.unanswered -= 1
        let now = Self.monotonicSeconds
        for entry in counts { guards.watches[entry.rule]?.add(entry, now: now) }
        for entry in counts {
            guard let found = guards.watches[entry.rule]?.fall(now: now) else { continue }
            fall(entry.rule, found)
        }
    }

    private func fall(_ id: String, _ found: RolloutGuard.Finding) {
        // An order that is being saved may change what was found. What was found is not forgotten.
        guard rollouts.waiting.isEmpty, !rollouts.isSaving, !rollouts.isClosed,
            let guardRule = guards.watches[id]?.rule,
            let rule = configuration.rules.rules.first(where: { $0.id == id }),
            rule.mode == .enforce
        else { return }
        guards.watches[id]?.forget()
        let share = rule.rollout.share(at: UnixTime(seconds: wallSeconds))
        let why = "\(found.text) at \(share.text)"
        log.error(
            """
            the guard of rule \(id) has fallen: \(why), more than \(guardRule.refused.text); the \
            rule observes until it is told otherwise; next: find the reason in `portcullis why` \
            and the metrics, then `portcullis rollout \(id)` with a share, or with file
            """
        )
        let call = RolloutWish.Call(.order(.observe, rule: id), why: why)
        let order = Rollouts.Waiting(call: call, by: RolloutNote.guardName) { [self] result in
            control.async { [self] in guardOrdered(id, why, result) }
        }
        rollouts.waiting.append(order)
        saveNext()
    }

    private func guardOrdered(_ id: String, _ why: String, _ result: RolloutResult) {
        switch result {
        case .changed:
            guards.falls[id, default: 0] += 1
            runHook(id, why)
        case .impossible, .unsaved, .upgrading: log.error("rule \(id) goes on as before: \(result)")
        }
    }

    private func runHook(_ id: String, _ why: String) {
        let settings = configuration.hooks
        guard !settings.onGuard.isEmpty else { return }
        guard guards.hooks < Guards.hooksMax else {
            return log.error("no hook is run for rule \(id): \(guards.hooks) wait already")
        }
        let run = HookRun(
            settings.onGuard,
            [
                "PORTCULLIS_HOOK": "guard", "PORTCULLIS_RULE": id, "PORTCULLIS_REASON": why,
                "PORTCULLIS_AT": UnixTime(seconds: wallSeconds).iso8601,
            ],
            timeout: settings.timeout
        )
        guards.hooks += 1
        guards.queue.async { [self] in
            let fault = run.run()
            control.async { [self] in
                guards.hooks -= 1
                guard let fault else { return }
                log.error("hooks.guard for rule \(id), \(settings.onGuard[0]): \(fault)")
            }
        }
    }

    /// Orders by an operator or a guard are in force: what was counted before counts no more.
    func forgetGuardCounts(of rule: String?) {
        guard let rule else { return }
        guards.watches[rule]?.forget()
    }

    /// How the guard of a rule stands, for operators; `nil` where it has none.
    func guardFacts(of rule: Rule) -> GuardFacts? {
        guards.watches[rule.id].map { watch in
            let found = watch.finding(now: Self.monotonicSeconds)
            return GuardFacts(
                text: watch.rule.text,
                installs: found.installs,
                refused: found.refused,
                falls: guards.falls[rule.id] ?? 0,
                hasFallen: rollouts.book.standing(of: rule).source == .guarded
            )
        }
    }
}
