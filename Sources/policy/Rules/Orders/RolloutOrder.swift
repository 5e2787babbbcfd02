/// What an operator has told the running gateway to do with a rule, in the place of what the file
/// says of its mode and rollout.
package enum RolloutOrder: Hashable, Sendable {
    /// Enforced for this share, by the subject and the salt that the file names.
    case share(Share)
    case observe
    /// Nothing is verified.
    case off

    /// Reads `10%`, `observe` or `off`.
    package init?(text: String) {
        switch text {
        case "observe": self = .observe
        case "off": self = .off
        default:
            guard let share = Share(percent: text) else { return nil }
            self = .share(share)
        }
    }

    /// The order as it is written.
    package var text: String {
        switch self {
        case .share(let share): share.text
        case .observe: "observe"
        case .off: "off"
        }
    }
}

extension Rule {
    /// The rule as it is under an order. One that verifies nothing in its file has said nothing of
    /// what requests must carry, so an order changes nothing about it.
    package func ordered(_ order: RolloutOrder) -> Rule {
        guard mode.verifies else { return self }
        switch order {
        case .off: return changed(.off, nil)
        case .observe: return changed(.observe, demands)
        case .share(let share):
            return ordered(to: Rollout(.fixed(share), by: rollout.subject, salt: rollout.salt))
        }
    }

    /// The rule, enforced for another share.
    func ordered(to rollout: Rollout) -> Rule {
        var demands = demands
        demands.rollout = rollout
        return changed(.enforce, demands)
    }

    private func changed(_ mode: Mode, _ demands: Demands?) -> Rule {
        Rule(
            id: id,
            index: index,
            match: match,
            goal: goal,
            origin: origin,
            mode: mode,
            allowEncoded: allowEncoded,
            demands: demands
        )
    }

    /// Mode, and the rollout where it says anything: `enforce, 25% by key`.
    package var modeText: String {
        guard mode == .enforce, rollout.schedule != .fixed(.whole) else { return mode.rawValue }
        return "\(mode.rawValue), \(rollout.text)"
    }
}
