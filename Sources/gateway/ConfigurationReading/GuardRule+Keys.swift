package import Rules

extension GuardRule: Declared {
    package static let keys = Keys<Self> {
        Key("refused", \.refused, share)
            .means("The rule falls back when more than this share is refused.")
            .mandatory("refused: the share of the installs, such as 2%")
        Key("of", \.unit, .word).means("What is counted.")
        Key("window", \.window, .time(.seconds(60) ... .seconds(3_600)))
            .means("The time in which it is counted.")
        Key("minimum", \.minimum, .count(10...1_000_000))
            .means("The least number for a decision.")
    }

    private static let share = ValueForm<Share>(
        { reader, key in
            reader.value(key, use: "a share above 0%, below 100%") { text in
                Share(percent: text).flatMap { $0 > .none && $0 < .whole ? $0 : nil }
            }
        },
        text: { $0.text }
    )

    /// `falls back to observe when more than 2% of at least 100 installs are refused in 5m`
    package var text: String {
        """
        falls back to observe when more than \(refused.text) of at least \(minimum) installs are \
        refused in \(window.settingText)
        """
    }
}
