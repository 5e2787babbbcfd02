/// The allowed word that was probably meant.
package enum Suggestion {
    /// The closest candidate, when it is close: at most two slips, and fewer than half of the
    /// letters.
    package static func closest(to word: String, among candidates: some Sequence<String>) -> String?
    {
        let word = Array(word.lowercased().utf8)
        guard word.count <= 64 else { return nil }
        var best: (text: String, distance: Int)?
        for candidate in candidates {
            let letters = Array(candidate.lowercased().utf8)
            let distance = distance(word, letters)
            guard distance <= 2, distance * 2 < max(word.count, letters.count) else { continue }
            if let found = best, found.distance <= distance { continue }
            best = (candidate, distance)
        }
        return best?.text
    }

    /// `use` with a question when a candidate is close.
    static func use(_ use: String, for word: String, among candidates: [String]) -> String {
        guard let meant = closest(to: word, among: candidates) else { return use }
        return "\(use) (did you mean \(meant)?)"
    }

    /// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var before: [Int] = []
        var last = Array(0...right.count)
        for (row, letter) in left.enumerated() {
            var next = [row + 1]
            for (column, other) in right.enumerated() {
                var cost = min(last[column + 1] + 1, next[column] + 1)
                cost = min(cost, last[column] + (letter == other ? 0 : 1))
                if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
                    cost = min(cost, before[column - 1] + 1)
                }
                next.append(cost)
            }
            before = last
            last = next
        }
        return last[right.count]
    }
}

extension ProblemLog {
    /// A name of an app or an origin (`kind`) that the configuration does not define.
    func unknown(_ kind: String, _ name: Located<String>, among defined: [String]) {
        let use = defined.isEmpty ? "\(kind)s that define it" : defined.joined(separator: " | ")
        error(
            name,
            found: "the unknown \(kind) \(SourceNode.quoted(name.value))",
            use: Suggestion.use(use, for: name.value, among: defined)
        )
    }
}
