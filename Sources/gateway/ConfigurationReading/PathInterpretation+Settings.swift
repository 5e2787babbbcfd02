package import HTTPWire

extension PathInterpretation {
    /// A key of an origin's `paths`, and the steps that its word excludes.
    struct Setting: Sendable {
        let key: String
        /// The word that means: in this respect the origin reads paths as written.
        let word: String
        let steps: PathInterpretation
        /// The behaviour of servers that take one of the steps.
        let text: String
    }

    /// The word that means: this origin may do whatever servers do.
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

    package static let keys = Keys<Self> {
        settings.map { setting in
            Key(setting.key).means("\(setting.word): the origin does not \(setting.text).")
        }
    }

    var involved: [Setting] { Self.settings.filter { !isDisjoint(with: $0.steps) } }
    /// Their keys.
    var names: [String] { involved.map(\.key) }
    /// The behaviour of servers with this interpretation.
    var text: String { involved.map(\.text).joined(separator: ", ") }

    /// The excluded steps, in the configuration's form; `nil` when there are none.
    var settingText: String? {
        let off = Self.settings.filter { isDisjoint(with: $0.steps) }
        guard !off.isEmpty else { return nil }
        return off.map { "\($0.key): \($0.word)" }.joined(separator: ", ")
    }
}

extension MappingReader {
    /// The steps that an origin may take on a path: all except those that the words exclude.
    func paths(_ key: String) -> Located<PathInterpretation>? {
        guard let inner = inner(key, PathInterpretation.keys) else { return nil }
        let made = PathInterpretation.settings.reduce(into: PathInterpretation.all) {
            made,
            setting in
            let words = [PathInterpretation.anyWord, setting.word]
            let use = words.joined(separator: " | ")
            let word = inner.value(setting.key, use: use, words: words) { text in
                words.contains(text) ? text : nil
            }
            if word?.value == setting.word { made.subtract(setting.steps) }
        }
        return located(key, made)
    }
}
