package import Rules

extension RiskRule: Declared {
    package static let keys = Keys<Self> {
        Key("max", \.max, .count(0...limitMax))
            .means("The highest metric that is within the limit.")
            .mandatory("max: the highest metric that is within the limit, such as 8")
        Key("unknown", \.unknown, .word)
            .means("Whether a metric that is not known counts as above the limit.")
        Key("action", \.action, .word)
            .means("What is done above the limit: a mark for the origin, or a refusal.")
        Key("max_age", \.daysMax, .days(1...400)).means("A metric that is older is unknown.")
        Key("rollout", \.rollout, .rolloutOfRisk)
            .means("The keys that action: refuse refuses.", otherwise: "all")
    }.checked { reader, risk in
        // A rollout names the refused clients, so without `refuse` it is a mistake.
        guard reader.has("rollout"), risk.action == .mark else { return }
        reader.error(
            "rollout",
            found: "it with action: mark, where it has no effect",
            use: "action: refuse, or no rollout"
        )
    }
}
