import HTTPWire

extension PathInterpretation {
    /// A key of an origin's `paths`, and what its word turns off.
    struct Setting: Sendable {
        let key: String
        /// The word for: this origin reads paths as written in this respect.
        let word: String
        let steps: PathInterpretation
        /// What servers do that take one of the steps.
        let text: String
    }

    /// The word for: whatever servers do, this origin may do.
    static let anyWord = "any"

    static let settings = [
        Setting(key: "case", word: "sensitive", steps: .foldsCase, text: "ignore case"),
        Setting(
            key: "slashes",
            word: "exact",
            steps: [.mergesSlashes, .dropsTrailingSlash],
            text: "merge slashes or drop one at the end"
        ),
        Setting(
            key: "parameters",
            word: "kept",
            steps: [.removesParameters, .removesEncodedParameters, .endsAtSemicolon],
            text: "remove ; parameters, or all from ; on"
        ),
        Setting(
            key: "path_info",
            word: "none",
            steps: .cutsPathInfo,
            text: "take what follows a script's name for PATH_INFO"
        ),
        Setting(
            key: "network_path",
            word: "kept",
            steps: .removesNetworkPath,
            text: "take what follows // for a host"
        ),
        Setting(
            key: "encoded_slash",
            word: "kept",
            steps: [.splitsAtEncodedSlash, .splitsAtEncodedBackslash, .splitsAtBackslash],
            text: "take encoded slashes and backslashes for slashes"
        ),
        Setting(
            key: "escapes",
            word: "decoded",
            steps: .keepsEscapes,
            text: "leave percent-encoding undecoded"
        ),
        Setting(
            key: "script_prefix",
            word: "none",
            steps: .dropsScript,
            text: "route what follows a front controller's name"
        ),
        Setting(
            key: "format",
            word: "kept",
            steps: .dropsFormat,
            text: "take what follows a dot at the end for a format"
        ),
        Setting(
            key: "index",
            word: "kept",
            steps: .dropsIndex,
            text: "run a directory's index file for the directory"
        ),
        Setting(
            key: "punctuation",
            word: "kept",
            steps: .foldsPunctuation,
            text: "take all punctuation for _"
        ),
    ]

    /// The settings that have a step of this reading.
    var involved: [Setting] { Self.settings.filter { !isDisjoint(with: $0.steps) } }
    /// Their keys.
    var names: [String] { involved.map(\.key) }
    /// What servers do that read paths so.
    var text: String { involved.map(\.text).joined(separator: ", ") }

    /// What is turned off, as a configuration says it; `nil` when nothing is.
    var settingText: String? {
        let off = Self.settings.filter { isDisjoint(with: $0.steps) }
        guard !off.isEmpty else { return nil }
        return off.map { "\($0.key): \($0.word)" }.joined(separator: ", ")
    }
}

extension MappingReader {
    /// What an origin may do to a path: everything, less what the words turn off.
    func paths(_ key: String) -> PathInterpretation? {
        let keys = PathInterpretation.settings.map(\.key)
        guard let node = node(key),
            let inner = MappingReader(node, path(key), keys: keys, log: log)
        else { return nil }
        return PathInterpretation.settings.reduce(into: .all) { made, setting in
            let words = [PathInterpretation.anyWord, setting.word]
            let use = words.joined(separator: " | ")
            let word = inner.value(setting.key, use: use, words: words) { text in
                words.contains(text) ? text : nil
            }
            if word?.value == setting.word { made.subtract(setting.steps) }
        }
    }
}
