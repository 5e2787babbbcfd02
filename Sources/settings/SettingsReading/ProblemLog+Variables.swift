// The texts of a configuration with variables of the environment in them, and what is absent and
// assumed.

extension ProblemLog {
    /// The text of a value, with variables put in where its key takes some; `nil`, with a problem,
    /// where that can't be done.
    ///
    /// - takesVariables: whether the key is a path, an address or a name.
    /// - isAllowed: whether the key may have a text, to find one for a variable that is assumed.
    package func text(
        of part: Located<String>,
        takesVariables: Bool,
        _ isAllowed: (String) -> Bool
    ) -> String? {
        guard let variables, part.value.contains("$") else { return part.value }
        let text = VariableText(part.value)
        guard takesVariables else {
            guard let meant = text.meant else { return text.text { "${\($0)}" } }
            error(
                part,
                found: "\(meant) in a key that takes no variables",
                use: "the value itself; variables stand in paths, addresses and names, and $${ "
                    + "for the text ${"
            )
            return nil
        }
        for case .other(let piece) in text.pieces {
            let use = "${NAME}, which has no default; or $${ for the text ${"
            error(part, found: "\(piece), which is no variable", use: use)
            return nil
        }
        var isWhole = true
        for name in text.names {
            guard let fault = variables.fault(of: name) else { continue }
            if fault == .unset, assumptions != nil { continue }
            isWhole = false
            error(
                part,
                found: "${\(name)}, \(fault.found)",
                use: "\(name) in the environment of the gateway and of its commands"
            )
        }
        guard isWhole else { return nil }
        let unset = text.names.filter { variables.value($0) == nil }
        guard unset.isEmpty else { return assumedText(text, without: unset, of: part, isAllowed) }
        let whole = text.text { variables.value($0) ?? "" }
        guard whole.utf8.count <= ReadingVariables.bytesMax else {
            let most = ReadingVariables.bytesMax
            error(
                part,
                found: "\(whole.utf8.count) bytes with its variables",
                use: "\(most) at most"
            )
            return nil
        }
        return whole
    }
}

extension ProblemLog {
    /// Whether the value of a key is assumed, so that nothing can be said of it.
    package func assumes(valueAt keyPath: String) -> Bool {
        assumptions?.keyPaths.contains(keyPath) ?? false
    }

    /// Whether what a key names is assumed to be right. What is there is never assumed.
    package func assumes(
        absent part: some Placed,
        _ kind: Assumption.Kind,
        named name: String
    ) -> Bool {
        guard assumptions != nil else { return false }
        // The variable stands for the file, too.
        guard !assumes(valueAt: part.keyPath) else { return true }
        assumptions?.add(Assumption(kind, named: name, at: part.place, part.keyPath))
        return true
    }

    /// The most variables of a text for which values are looked for one by one.
    private static let combinedMax = 3

    /// A text that its key may have, for one with variables that are not set; `nil`, with a
    /// problem, where there is none.
    package func assumedText(
        _ text: VariableText,
        without unset: [String],
        of part: Located<String>,
        _ isAllowed: (String) -> Bool
    ) -> String? {
        for name in unset {
            let variable = "${\(name)}"
            assumptions?.add(
                Assumption(.variable, named: variable, at: part.place, part.keyPath)
            )
        }
        let candidates = unset.map { name in
            Assumptions.candidates(for: name, assumptions?.number(of: name) ?? 1)
        }
        func whole(_ choice: [Int]) -> String {
            text.text { name in
                guard let index = unset.firstIndex(of: name) else {
                    return variables?.value(name) ?? ""
                }
                return candidates[index][choice[index]]
            }
        }
        // All of one kind, and then each with each.
        let kinds = candidates[0].indices
        var choices = kinds.map { kind in unset.map { _ in kind } }
        if unset.count > 1, unset.count <= Self.combinedMax {
            choices += unset.reduce([[]]) { before, _ in
                before.flatMap { choice in kinds.map { choice + [$0] } }
            }
        }
        if let found = choices.lazy.map(whole).first(where: isAllowed) { return found }
        let names = unset.map { "${\($0)}" }.joined(separator: ", ")
        error(
            part,
            found: "\(names), for which nothing that is allowed here can be assumed",
            use: "\(unset.joined(separator: ", ")) in the environment"
        )
        return nil
    }
}
