import Cryptography
import Rules

// The keys of a share: fixed or growing.
extension MappingReader {
    /// The keys of a share: fixed or growing.
    ///
    /// - path: the value that they make together, for a section that compares it.
    static func scheduleKeys<Section>(
        _ path: (any KeyPath<Section, Rollout.Schedule> & Sendable)? = nil
    ) -> [Key<Section>] {
        let name = "percent"
        return [
            (path.map { Key(name, later: $0, .whole) } ?? Key(name))
                .means("A fixed share."),
            Key("from").means("When a share begins to grow, with start at that time."),
            Key("to").means("When it has grown to end."),
            Key("start").means("The share at first."),
            Key("end").means("The share at last."),
        ]
    }

    private static let datedKeys = ["from", "to", "start", "end"]

    /// Whether there is a key of a share.
    var hasSchedule: Bool { has("percent") || Self.datedKeys.contains(where: has) }

    /// The share by the mapping's keys.
    func schedule() -> Rollout.Schedule? {
        func share(_ key: String) -> Located<Share>? {
            value(key, use: "a percentage, 0%…100%, with at most four decimals") {
                Share(percent: $0)
            }
        }
        func time(_ key: String) -> Located<UnixTime>? {
            value(key, use: "a date (2026-12-01) or a UTC time (2026-12-01T10:00:00Z)") { text in
                let text = text.utf8.count == 10 ? text + "T00:00:00Z" : text
                return UnixTime(iso8601: text).flatMap { $0.seconds >= 0 ? $0 : nil }
            }
        }
        let dated = Self.datedKeys
        guard !has("percent") else {
            for key in dated where has(key) {
                error(
                    key,
                    found: "it beside percent",
                    use: "either percent or all of \(dated.joined(separator: ", "))"
                )
            }
            return share("percent").map { .fixed($0.value) }
        }
        guard dated.contains(where: has) else {
            log.error(
                place,
                keyPath,
                found: "no share",
                use: "percent, or all of \(dated.joined(separator: ", "))"
            )
            return nil
        }
        for key in dated { require(key, use: "it too: a schedule has from, to, start and end") }
        // All four are read before a missing one is reported: each may have a problem.
        let (from, to) = (time("from"), time("to"))
        let (start, end) = (share("start"), share("end"))
        guard let from, let to, let start, let end else { return nil }
        guard from.value < to.value else {
            log.error(to, found: "an end that is not after its start", use: "a later date")
            return nil
        }
        guard start.value <= end.value else {
            log.error(
                end,
                found: "\(end.value.text) after \(start.value.text)",
                use: "a share that is not below start: a rollout only grows"
            )
            return nil
        }
        return .growing(from: from.value, to: to.value, start: start.value, end: end.value)
    }
}

/// The contents of a rollout, whose schedule has several keys.
private struct RolloutKeys: Declared {
    var schedule: Rollout.Schedule?
    var subject = Rollout.Subject.key
    var salt = ""

    package static let keys = Keys<Self> {
        MappingReader.scheduleKeys()
        Key("by", \.subject, .word).means("What a rollout depends on.")
        saltKey
    }.checked { $1.schedule = $0.schedule() }

    /// Those of the rollout of a rule's `risk`, which counts keys.
    static let keysOfRisk = Keys<Self> {
        MappingReader.scheduleKeys()
        saltKey
    }.checked { $1.schedule = $0.schedule() }

    private static let saltKey = Key<Self>("salt", \.salt, saltForm)
        .means("Keys that are early with one salt are not with another.")

    private static let saltForm = ValueForm<String>.text("a text of at most 64 bytes") { text in
        (1...64).contains(text.utf8.count) ? text : nil
    }
}

extension ValueForm where Value == Rollout {
    /// A rule's rollout. Without a salt of its own it has an empty one.
    static var rollout: ValueForm { rollout(RolloutKeys.keys) }

    /// That of a rule's `risk`.
    static var rolloutOfRisk: ValueForm { rollout(RolloutKeys.keysOfRisk) }

    private static func rollout(_ keys: Keys<RolloutKeys>) -> ValueForm {
        ValueForm(
            { reader, key in
                let node = reader.node(key)
                let path = reader.path(key)
                let stated = Stated(node, at: path, over: RolloutKeys(), keys: keys, reader.log)
                guard let stated, let schedule = stated.value.schedule else { return nil }
                let (subject, salt) = (stated.value.subject, stated.value.salt)
                return reader.located(key, Rollout(schedule, by: subject, salt: salt))
            },
            text: { $0.text }
        )
    }
}

extension Rollout {
    /// The rollout with this salt, unless it has one.
    func salted(_ salt: String) -> Rollout {
        self.salt.isEmpty ? Rollout(schedule, by: subject, salt: salt) : self
    }
}
