import Rules
package import Services

extension ProbePaths: Declared {
    package static let keys = Keys<Self> {
        Key("live", \.live, path).means("The path that says whether the process serves.")
        Key("ready", \.ready, path).means("The path that says whether clients should come.")
    }

    private static let path = ValueForm<String?>(
        { reader, key in
            reader.value(
                key,
                use: "off | a path of plain segments without a slash at its end, as /livez",
                words: ["off"]
            ) { (text) -> String?? in
                text == "off" ? .some(nil) : TextForm.plainPath(text).map(Optional.some)
            }
        },
        text: { $0 ?? "off" }
    )

    /// A probe must not silently take a path of the API.
    func validate(endpoints: String, _ rules: RuleSet, log: ProblemLog) {
        if let live, let ready, live == ready {
            log.error(
                log.located("probes.ready", ready),
                found: "\(ready), which is probes.live already",
                use: "a path of its own"
            )
        }
        for (key, path) in all {
            let path = log.located("probes.\(key)", path)
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
