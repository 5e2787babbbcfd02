package import Sessions

/// How long sessions live, and how many there are.
package struct SessionSettings: Hashable, Sendable {
    /// `lifetime`: default 10m, 1s…1d. Short: what ends it early is the revocation of its key.
    package var lifetime: Duration = .seconds(600)
    /// `window`: how far below the highest a sequence number may be. Default 256, 64…4096. As many
    /// requests of one session may be under way at once.
    package var window = 256
    /// `limit`: sessions in all. Default 100000, 1…1000000; each takes some 600 bytes. A further
    /// one ends the oldest.
    package var sessionsMax = 100_000

    package init() {}

    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let keys = ["lifetime", "window", "limit"]
        guard let node, let reader = MappingReader(node, "sessions", keys: keys, log: log) else {
            return
        }
        if let time = reader.duration("lifetime", in: .seconds(1)...Duration.seconds(86_400)) {
            lifetime = time.value
        }
        if let number = reader.integer("window", in: 64...4096) { window = number.value }
        if let number = reader.integer("limit", in: 1...1_000_000) { sessionsMax = number.value }
    }

    /// The settings as the table takes them.
    package var limits: SessionTable.Limits {
        SessionTable.Limits(
            lifetime: lifetime.components.seconds,
            window: window,
            sessionsMax: sessionsMax
        )
    }
}
