/// Commands that the gateway runs when something has happened: `hooks`.
///
/// They stand in the main file and in no rule, so that who may write rules can't run programs.
package struct HookSettings: Hashable, Sendable {
    package static let wordsMax = 16
    private static let bytesMax = 4_096

    /// `guard`: the program and its arguments; empty for none. Run when a guard has fallen.
    package var onGuard: [String] = []
    /// `timeout`: default 10s, 1s…5m. A command that takes longer is killed.
    package var timeout = Duration.seconds(10)

    package init() {}

    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let keys = ["guard", "timeout"]
        guard let node, let reader = MappingReader(node, "hooks", keys: keys, log: log) else {
            return
        }
        if let time = reader.duration("timeout", in: .seconds(1)...Duration.seconds(300)) {
            timeout = time.value
        }
        onGuard = Self.words(reader, "guard")
    }

    /// A program and its arguments; none, and a problem, when they can't be read.
    private static func words(_ reader: MappingReader, _ key: String) -> [String] {
        let use = "an absolute path, then arguments, \(wordsMax) texts at most"
        var words: [String] = []
        for (place, entry) in (reader.list(key, of: "texts: \(use)") ?? []).enumerated() {
            let word = reader.value(of: entry.node, entry.keyPath, use: use) { text in
                let isFit =
                    text.utf8.count <= bytesMax && !text.utf8.contains(0) && place < wordsMax
                    && (place > 0 || text.hasPrefix("/"))
                return isFit ? text : nil
            }
            guard let word else { return [] }
            words.append(word.value)
        }
        return words
    }
}
