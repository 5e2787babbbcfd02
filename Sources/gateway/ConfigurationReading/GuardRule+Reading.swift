import Rules

extension GuardRule {
    /// What `guard` of a rule says; `nil`, and a problem where the key stands, when it can't be
    /// read.
    init?(_ reader: MappingReader, _ key: String) {
        let keys = ["refused", "of", "window", "minimum"]
        guard let node = reader.node(key),
            let inner = MappingReader(node, reader.path(key), keys: keys, log: reader.log)
        else { return nil }
        inner.require("refused", use: "refused: the share of the installs, such as 2%")
        _ = inner.word("of", Unit.self)
        let window = inner.duration("window", in: .seconds(60)...Duration.seconds(3_600))
        let minimum = inner.integer("minimum", in: 10...1_000_000)
        let refused = inner.value("refused", use: "a share above 0%, below 100%") { text in
            Share(percent: text).flatMap { $0 > .none && $0 < .whole ? $0 : nil }
        }
        guard let refused else { return nil }
        self.init(refused: refused.value)
        if let window { self.window = window.value }
        if let minimum { self.minimum = minimum.value }
    }

    /// `falls back to observe when more than 2% of at least 100 installs are refused in 5m`
    package var text: String {
        """
        falls back to observe when more than \(refused.text) of at least \(minimum) installs are \
        refused in \(window.settingText)
        """
    }
}
