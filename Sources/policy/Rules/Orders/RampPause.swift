package import Signatures

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
    init?(of rule: Rule, at now: UnixTime, after earlier: RampPause?) {
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
    func isOf(_ rule: Rule) -> Bool { rule.mode == .enforce && rule.rollout.schedule.text == ramp }

    var isPaused: Bool {
        switch state {
        case .paused: true
        case .resumed: false
        }
    }

    /// The pause after an operator has given the rule back to its file.
    func resumed(_ note: RolloutNote) -> RampPause {
        guard case .paused(let since) = state else { return self }
        // A clock that was set back makes no ramp go on earlier.
        let gone = min(Self.delayMax, max(0, note.at.seconds - since.seconds))
        let sum = min(Self.delayMax, delay + gone)
        return RampPause(ramp: ramp, delay: sum, state: .resumed(note)) ?? self
    }

    /// The text about this ramp that operators read.
    func text(of rule: Rule) -> String {
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
    func delayed(by seconds: Int64) -> Rollout.Schedule {
        guard case .growing(let from, let to, let start, let end) = self else { return self }
        let delay = max(0, min(seconds, Self.lastSecond - to.seconds))
        return .growing(
            from: from.advanced(bySeconds: delay),
            to: to.advanced(bySeconds: delay),
            start: start,
            end: end
        )
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
    /// The rule with its ramp moved by this number of seconds.
    func delayed(by seconds: Int64) -> Rule {
        let schedule = rollout.schedule.delayed(by: seconds)
        return ordered(to: Rollout(schedule, by: rollout.subject, salt: rollout.salt))
    }
}
