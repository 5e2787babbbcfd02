package import Signatures

/// All orders of operators about rollouts: they replace what the files say.
///
/// A value. The gateway keeps the current one and saves each change before it takes effect.
/// ``rules(_:)`` makes the rules that event loops serve from the rules of the files.
package struct RolloutOrders: Equatable, Sendable {
    /// The most rules with an order, including rules that the configuration no longer has. Beyond
    /// it, orders are refused.
    package static let entriesMax = 1_000

    package struct Entry: Equatable, Sendable {
        package let order: RolloutOrder
        package let note: RolloutNote
    }

    /// Why a request can't be fulfilled.
    package enum Fault: Error, Equatable {
        /// No rule has the id.
        case unknownRule
        /// The rule verifies nothing in its file, so the file does not say how to.
        case verifiesNothing
        case full
        /// The order that is to end is not there.
        case noSuchOrder
    }

    /// A change by a request, for the audit log.
    package struct Change: Equatable, Sendable {
        /// The rule's id; `nil` for all rules.
        package let rule: String?
        package let from: String
        package let to: String
        package let note: RolloutNote

        package init(rule: String?, from: String, to: String, note: RolloutNote) {
            (self.rule, self.from, self.to, self.note) = (rule, from, to, note)
        }
    }

    /// By the rule's id.
    package internal(set) var entries: [String: Entry] = [:]
    /// The note of the order that every enforcing rule observes; `nil` without that order.
    package internal(set) var emergency: RolloutNote?
    /// Ramps that guards have stopped, by the rule's id. A paused ramp has an entry, and a resumed
    /// one has a rule, so there are never more than both together.
    package internal(set) var pauses: [String: RampPause] = [:]

    package init() {}

    /// Whether nothing replaces what the files say.
    package var isEmpty: Bool { entries.isEmpty && emergency == nil && pauses.isEmpty }

    /// Applies a request.
    ///
    /// - rules: the rules of the files.
    /// - Returns: the change for the audit log.
    package mutating func take(
        _ request: RolloutRequest,
        note: RolloutNote,
        rules: RuleSet
    ) throws(Fault) -> Change {
        defer { forgetPauses(rules) }
        switch request {
        case .order(.atMost(let share), let id): return try lower(id, to: share, note)
        case .order(let order, let id):
            let rule = try Self.rule(id, rules)
            guard rule.mode.verifies else { throw .verifiesNothing }
            let from = standing(of: rule)
            guard entries[id] != nil || entries.count < Self.entriesMax else { throw .full }
            entries[id] = Entry(order: order, note: note)
            if note.isGuards, let pause = RampPause(of: rule, at: note.at, after: pauses[id]) {
                pauses[id] = pause
            }
            return Change(rule: id, from: from.text, to: standing(of: rule).text, note: note)
        case .file(let id):
            // An order for a rule that is gone can be taken back, too.
            guard entries[id] != nil || rules.rules.contains(where: { $0.id == id }) else {
                throw .unknownRule
            }
            let rule = rules.rules.first { $0.id == id }
            let from = rule.map { standing(of: $0).text } ?? entries[id]?.order.text ?? ""
            entries[id] = nil
            pauses[id] = pauses[id]?.resumed(note)
            let to = rule.map { standing(of: $0).text } ?? "no such rule"
            return Change(rule: id, from: from, to: to, note: note)
        case .observeAll:
            let from = emergency == nil ? "each rule's own" : "observe"
            emergency = emergency ?? note
            return Change(rule: nil, from: from, to: "observe", note: note)
        case .resumeAll:
            let from = emergency == nil ? "each rule's own" : "observe"
            emergency = nil
            return Change(rule: nil, from: from, to: "each rule's own", note: note)
        }
    }

    /// The orders that a file ends by taking their rules to `off` or `deny`: they make a rule
    /// enforce for a share. An operator who writes `observe` later gets what the file says. What
    /// refuses fewer clients than a file goes on to hold, so each becomes ``RolloutOrder/atMost``.
    ///
    /// - before: the rules that the gateway served before; `nil` at its start. An order for a rule
    ///   that verified nothing there is left: the operator who gave it waits for this file.
    package func ended(by rules: RuleSet, after before: RuleSet?) -> [RolloutRequest] {
        guard !entries.isEmpty else { return [] }
        let silent = Set(before?.rules.filter { !$0.mode.verifies }.map(\.id) ?? [])
        return rules.rules.compactMap { rule in
            guard !rule.mode.verifies, !silent.contains(rule.id),
                case .share(let share) = entries[rule.id]?.order
            else { return nil }
            return .order(.atMost(share), rule: rule.id)
        }
    }

    /// Ends an order of a share, but for what it keeps a file from enforcing.
    private mutating func lower(
        _ id: String,
        to share: Share,
        _ note: RolloutNote
    ) throws(Fault) -> Change {
        guard let entry = entries[id], entry.order == .share(share) else { throw .noSuchOrder }
        // No file enforces for more than everyone.
        let rest = share == .whole ? nil : Entry(order: .atMost(share), note: entry.note)
        entries[id] = rest
        let to = rest.map { "order \($0.order.text)" } ?? "no order"
        return Change(rule: id, from: "order \(entry.order.text)", to: to, note: note)
    }

    /// The state of a rule of the files.
    package func standing(of rule: Rule) -> RolloutStanding {
        let entry = entries[rule.id]
        guard rule.mode.verifies else {
            return RolloutStanding(rule, from: .file, note: nil, kept: entry)
        }
        let standing = standing(of: rule, under: entry)
        guard let emergency, standing.rule.mode == .enforce else { return standing }
        return RolloutStanding(
            rule.ordered(.observe),
            from: .emergency,
            note: emergency,
            rampText: standing.rampText,
            kept: entry
        )
    }

    /// The state of a rule that verifies, without the order about all rules.
    private func standing(of rule: Rule, under entry: Entry?) -> RolloutStanding {
        let pause = pauses[rule.id].flatMap { $0.isOf(rule) ? $0 : nil }
        let ramp = pause?.text(of: rule)
        var standing = RolloutStanding(rule, from: .file, note: nil)
        if let pause, case .resumed(let note) = pause.state, pause.delay > 0 {
            standing = RolloutStanding(
                rule.delayed(by: pause.delay),
                from: .delayed,
                note: note,
                rampText: ramp
            )
        }
        guard let entry else { return standing }
        let ordered: Rule
        if case .atMost = entry.order {
            ordered = (pause?.stopped(rule) ?? standing.rule).ordered(entry.order)
            guard ordered.mode == .enforce, ordered.rollout != standing.rule.rollout else {
                return standing.keeping(entry)
            }
        } else {
            ordered = rule.ordered(entry.order)
        }
        let source: RolloutStanding.Source = entry.note.isGuards ? .guarded : .command
        return RolloutStanding(ordered, from: source, note: entry.note, rampText: ramp)
    }

    /// The orders by which rules enforce, alone: for what `check` says of enforced rules. What
    /// makes rules refuse fewer clients for now must not hide how their files stand.
    package var enforcing: RolloutOrders {
        var orders = RolloutOrders()
        orders.entries = entries.filter { if case .share = $0.value.order { true } else { false } }
        return orders
    }

    /// The rules that event loops serve.
    package func rules(_ files: RuleSet) -> RuleSet {
        isEmpty ? files : files.replacing(files.rules.map { standing(of: $0).rule })
    }

    /// Whether no rule refuses a client under these orders, now or later, that it serves under
    /// earlier ones.
    ///
    /// - rules: the rules of the files.
    package func refusesNoMore(
        than before: RolloutOrders,
        _ rules: RuleSet,
        at now: UnixTime
    ) -> Bool {
        guard before.emergency == nil || emergency != nil else { return false }
        // An emergency ends, and then each rule's own order counts.
        var (old, new) = (before, self)
        (old.emergency, new.emergency) = (nil, nil)
        return rules.rules.allSatisfy { rule in
            new.standing(of: rule).rule.refusesNoMore(than: old.standing(of: rule).rule, at: now)
        }
    }

    /// Forgets ramps that are no longer in the files.
    private mutating func forgetPauses(_ rules: RuleSet) {
        guard !pauses.isEmpty else { return }
        let known = Dictionary(
            rules.rules.map { ($0.id, $0) },
            uniquingKeysWith: { first, _ in first }
        )
        pauses = pauses.filter { id, pause in
            pause.isPaused && entries[id] != nil || known[id].map(pause.isOf) == true
        }
    }

    private static func rule(_ id: String, _ rules: RuleSet) throws(Fault) -> Rule {
        guard let rule = rules.rules.first(where: { $0.id == id }) else { throw .unknownRule }
        return rule
    }
}

/// The state of a rule, and where it comes from.
package struct RolloutStanding: Sendable {
    /// The origin of mode and rollout. The raw value is API.
    package enum Source: String, CaseIterable, Sendable {
        case file
        /// An operator's order for the rule.
        case command
        /// The rule's guard has fallen, and no order has come since.
        case guarded = "guard"
        /// The file, whose dated ramp is later than its dates: the guard had stopped it.
        case delayed
        /// An operator's order for all rules.
        case emergency
    }

    package let rule: Rule
    package let source: Source
    /// The note of the order; `nil` for the file.
    package let note: RolloutNote?
    /// The effect of a guard on the file's ramp; `nil` where the ramp follows its dates.
    package let rampText: String?
    /// An order for the rule that changes nothing now; `nil` where there is none.
    private let kept: RolloutOrders.Entry?

    init(
        _ rule: Rule,
        from source: Source,
        note: RolloutNote?,
        rampText: String? = nil,
        kept: RolloutOrders.Entry? = nil
    ) {
        (self.rule, self.source, self.note) = (rule, source, note)
        (self.rampText, self.kept) = (rampText, kept)
    }

    fileprivate func keeping(_ entry: RolloutOrders.Entry) -> RolloutStanding {
        RolloutStanding(rule, from: source, note: note, rampText: rampText, kept: entry)
    }

    /// The order that changes nothing now, and its note: `100% (2026-11-22T19:20:00Z, uid 0)`.
    package var keptText: String? { kept.map { "\($0.order.text) (\($0.note.text))" } }

    /// The order that replaces the file, and one that does not now, for `check`, `diff` and
    /// `explain`; `nil` without either.
    package var orderText: String? {
        let why = "(\(note?.text ?? ""))"
        let order: String? =
            switch source {
            case .file: nil
            case .command: "by a command it is \(rule.modeText) \(why)"
            case .guarded: "its guard has fallen, it is \(rule.modeText) \(why)"
            case .delayed: "it is \(rule.modeText) \(why)"
            case .emergency: "by `rollout --all observe` it observes \(why)"
            }
        let idle = keptText.map { "a kept order changes nothing now: \($0)" }
        let parts = [order, rampText, idle].compactMap(\.self)
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }

    /// `enforce, 10% by key (command)`
    package var text: String { "\(rule.modeText) (\(source.rawValue))" }
}

/// The delay of a rule's dated ramp, after the rule's guard has stopped it.
///
/// The pause begins when the guard falls. It ends when an operator gives the rule back to its file.
/// The ramp then goes on from the share at which it stopped. Orders in between don't change that.
/// If the file has changed the ramp since, the ramp has no delay.
package struct RampPause: Equatable, Sendable {
    package enum State: Equatable, Sendable {
        /// The ramp has stopped at this time.
        case paused(UnixTime)
        /// The ramp goes on; the note says which operator gave the rule back to its file.
        case resumed(RolloutNote)
    }

    /// The longest delay: ten years, in seconds.
    package static let delayMax: Int64 = 3_660 * 86_400

    /// The ramp of the file, in words: ``Rollout/Schedule/text``.
    package let ramp: String
    /// The time for which earlier pauses have stopped it, in seconds: 0…``delayMax``.
    package let delay: Int64
    package let state: State

    package init?(ramp: String, delay: Int64, state: State) {
        guard (0...Self.delayMax).contains(delay) else { return nil }
        (self.ramp, self.delay, self.state) = (ramp, delay, state)
    }

    /// The pause that begins when the guard of a rule falls. `nil` where no ramp of the file is
    /// growing then.
    ///
    /// - earlier: the rule's earlier pause.
    fileprivate init?(of rule: Rule, at now: UnixTime, after earlier: RampPause?) {
        let earlier = earlier.flatMap { $0.isOf(rule) ? $0 : nil }
        if case .paused = earlier?.state { return nil }
        let delay = earlier?.delay ?? 0
        let schedule = rule.rollout.schedule
        guard rule.mode == .enforce, case .growing(_, let end, _, _) = schedule.delayed(by: delay),
            now < end
        else { return nil }
        self.init(ramp: schedule.text, delay: delay, state: .paused(now))
    }

    /// Whether the file's ramp is the one that was stopped.
    fileprivate func isOf(_ rule: Rule) -> Bool {
        rule.mode == .enforce && rule.rollout.schedule.text == ramp
    }

    fileprivate var isPaused: Bool {
        switch state {
        case .paused: true
        case .resumed: false
        }
    }

    /// The pause after an operator has given the rule back to its file.
    fileprivate func resumed(_ note: RolloutNote) -> RampPause {
        guard case .paused(let since) = state else { return self }
        // A clock that was set back makes no ramp go on earlier.
        let gone = min(Self.delayMax, max(0, note.at.seconds - since.seconds))
        let sum = min(Self.delayMax, delay + gone)
        return RampPause(ramp: ramp, delay: sum, state: .resumed(note)) ?? self
    }

    /// A rule whose ramp stands still, with the share at which it does; `nil` where the ramp goes
    /// on.
    fileprivate func stopped(_ rule: Rule) -> Rule? {
        guard case .paused(let since) = state else { return nil }
        let (rollout, schedule) = (rule.rollout, rule.rollout.schedule.delayed(by: delay))
        let share = Rollout(schedule, salt: "").share(at: since)
        return rule.ordered(
            to: Rollout(.fixed(share), by: rollout.subject, salt: rollout.salt)
        )
    }

    /// The text about this ramp that operators read.
    fileprivate func text(of rule: Rule) -> String {
        switch state {
        case .paused(let since):
            let share = Rollout(rule.rollout.schedule.delayed(by: delay), salt: "").share(at: since)
            let time = UnixTime(seconds: since.seconds).iso8601
            return "its ramp stands at \(share.text) since \(time), and goes on from there after "
                + "`rollout \(rule.id) file`"
        case .resumed:
            let (days, rest) = (delay / 86_400, delay % 86_400)
            let time = "\(rest / 3_600)h \(rest / 60 % 60)m \(rest % 60)s"
            return "its ramp is \(days > 0 ? "\(days)d " : "")\(time) late, since its guard had "
                + "stopped it"
        }
    }
}

extension Rollout.Schedule {
    /// 9999-12-31T23:59:59Z: the last second whose year has four digits.
    private static let lastSecond: Int64 = 253_402_300_799

    /// A ramp moved by this number of seconds; a fixed share as it is.
    fileprivate func delayed(by seconds: Int64) -> Rollout.Schedule {
        guard case .growing(let from, let to, let start, let end) = self else { return self }
        let delay = max(0, min(seconds, Self.lastSecond - to.seconds))
        return .growing(
            from: from.advanced(bySeconds: delay),
            to: to.advanced(bySeconds: delay),
            start: start,
            end: end
        )
    }

    /// The schedule, ended where it reaches a share.
    func atMost(_ share: Share) -> Rollout.Schedule {
        switch self {
        case .fixed(let own): return .fixed(min(own, share))
        case .growing(let from, let to, let start, let end):
            guard end > share else { return self }
            guard start < share else { return .fixed(share) }
            // At least one second, and not after `to`, since the share is above the start and
            // below the end. The product stays below 2.6 × 10¹⁷.
            let growth = Int64(end.millionths - start.millionths)
            let part = Int64(share.millionths - start.millionths)
            let seconds = ((to.seconds - from.seconds) * part + growth - 1) / growth
            let top = from.advanced(bySeconds: max(1, seconds))
            return .growing(from: from, to: top, start: start, end: share)
        }
    }

    /// The schedule in words: `25%`.
    package var text: String {
        switch self {
        case .fixed(let share): share.text
        case .growing(let from, let to, let start, let end):
            "\(start.text) on \(Self.date(from)) to \(end.text) on \(Self.date(to))"
        }
    }

    private static func date(_ time: UnixTime) -> String {
        let text = time.iso8601
        return text.hasSuffix("T00:00:00Z") ? String(text.dropLast(10)) : text
    }
}

extension Rule {
    /// Whether this form of a rule refuses no client, now or later, that another one serves.
    fileprivate func refusesNoMore(than before: Rule, at now: UnixTime) -> Bool {
        // Orders change no rule that denies.
        guard mode == .enforce else { return true }
        guard before.mode == .enforce else { return false }
        guard rollout.schedule != before.rollout.schedule else { return true }
        // A ramp that grows later may refuse more.
        guard case .fixed(let share) = rollout.schedule else { return false }
        return share <= before.rollout.share(at: now)
    }

    /// The rule with its ramp moved by this number of seconds.
    fileprivate func delayed(by seconds: Int64) -> Rule {
        let schedule = rollout.schedule.delayed(by: seconds)
        return ordered(to: Rollout(schedule, by: rollout.subject, salt: rollout.salt))
    }
}
