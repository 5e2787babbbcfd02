import Rules
import Services

/// The file's section about probes on the public listeners: `probes`.
struct ProbeDraft {
    private let live: Located<String>?
    private let ready: Located<String>?

    var paths: ProbePaths { ProbePaths(live: live?.value, ready: ready?.value) }

    init(_ node: SourceNode?, log: ProblemLog) {
        let keys = ["live", "ready"]
        guard let node, let reader = MappingReader(node, "probes", keys: keys, log: log) else {
            (live, ready) = (nil, nil)
            return
        }
        func path(_ key: String) -> Located<String>? {
            let found = reader.value(
                key,
                use: "off | a path of plain segments without a slash at its end, as /livez",
                words: ["off"]
            ) { (text) -> String?? in
                text == "off" ? .some(nil) : ConfigurationDraft.plainPath(text).map(Optional.some)
            }
            guard let found, let path = found.value else { return nil }
            return Located(value: path, place: found.place, keyPath: found.keyPath)
        }
        (live, ready) = (path("live"), path("ready"))
    }

    /// A probe must not silently take a path of the API.
    func validate(endpoints: String, _ rules: RuleSet, log: ProblemLog) {
        if let live, let ready, live.value == ready.value {
            log.error(
                ready,
                found: "\(ready.value), which is probes.live already",
                use: "a path of its own"
            )
        }
        for path in [live, ready].compactMap(\.self) {
            if path.value == endpoints || path.value.hasPrefix(endpoints + "/") {
                log.error(
                    path,
                    found: "\(path.value), which is among the gateway's own endpoints",
                    use: "a path outside \(endpoints)"
                )
            }
            warnOfRules(at: path, rules, log)
        }
    }

    /// The default rule takes only requests without a rule of their own, so it loses none that a
    /// rule was written for.
    private func warnOfRules(at path: Located<String>, _ rules: RuleSet, _ log: ProblemLog) {
        let segments = path.value.dropFirst().split(separator: "/").map { Array($0.utf8) }
        let matching = rules.rules.dropLast().filter { $0.match.path.matches(segments) }
        // A wildcard before it may be for other hosts or methods.
        let named = matching.first { $0.match.path.text == path.value }
        guard let rule = named ?? matching.first else { return }
        if named != nil {
            log.error(
                path,
                found: "\(path.value), the path of rule \(rule.id), which no request would reach",
                use: "a path that the API does not have"
            )
        } else {
            log.warning(
                path,
                found: "\(path.value), which rule \(rule.id) (\(rule.match.text)) would forward",
                use: "a path that the API does not have, since the gateway answers it itself"
            )
        }
    }
}
