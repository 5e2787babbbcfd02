import Rules

/// What `risk` of a rule says.
struct RiskDraft {
    let max: Located<Int>
    private let unknown: RiskRule.Unknown?
    private let action: Located<RiskRule.Action>?
    private let maxAge: Int?
    private let rollout: Located<Rollout.Schedule>?
    private let salt: String?
    private let log: ProblemLog

    /// `nil`, and a problem where the key stands, when it can't be read.
    init?(_ reader: MappingReader, _ key: String) {
        let keys = ["max", "unknown", "action", "max_age", "rollout"]
        guard let node = reader.node(key),
            let inner = MappingReader(node, reader.path(key), keys: keys, log: reader.log)
        else { return nil }
        log = reader.log
        inner.require("max", use: "max: the highest metric that is within the limit, such as 8")
        unknown = inner.word("unknown", RiskRule.Unknown.self)?.value
        action = inner.word("action")
        let day = Duration.seconds(86_400)
        maxAge = inner.duration("max_age", in: day...(day * 400)).map {
            Int($0.value.components.seconds / 86_400)
        }
        (rollout, salt) = Self.rollout(inner)
        guard let max = inner.integer("max", in: 0...RiskRule.limitMax) else { return nil }
        self.max = max
    }

    private static func rollout(
        _ reader: MappingReader
    ) -> (schedule: Located<Rollout.Schedule>?, salt: String?) {
        let keys = MappingReader.scheduleKeys + ["salt"]
        guard let node = reader.node("rollout"),
            let inner = MappingReader(node, reader.path("rollout"), keys: keys, log: reader.log)
        else { return (nil, nil) }
        let salt = inner.value("salt", use: "a text of at most 64 bytes") { text in
            (1...64).contains(text.utf8.count) ? text : nil
        }
        let schedule = inner.schedule().map {
            Located(value: $0, place: node.place, keyPath: reader.path("rollout"))
        }
        return (schedule, salt?.value)
    }

    /// The rule's part. A rollout says for whom is refused, so without that it is a mistake.
    ///
    /// - `id`: of the rule. A key's place in this rollout is independent of that in the rule's.
    func rule(ofRule id: String) -> RiskRule {
        var rule = RiskRule(max: max.value, salt: salt ?? "\(id)/risk")
        rule.unknown = unknown ?? .allow
        rule.action = action?.value ?? .mark
        rule.daysMax = maxAge ?? RiskRule.daysMaxDefault
        guard let rollout else { return rule }
        rule.rollout = Rollout(rollout.value, by: .key, salt: salt ?? "\(id)/risk")
        if rule.action == .mark {
            log.error(
                rollout.place,
                rollout.keyPath,
                found: "it with action: mark, where it has no effect",
                use: "action: refuse, or no rollout"
            )
        }
        return rule
    }
}
