/// A fault in a configuration, or a part that is probably not intended.
package struct Problem: Hashable, Sendable {
    package enum Severity: String, Sendable {
        /// The configuration is refused.
        case error
        /// The configuration is accepted.
        case warning
    }

    /// A line of a file.
    package struct Place: Hashable, Sendable {
        package let file: String
        /// Counted from 1.
        package let line: Int

        package init(file: String, line: Int) {
            self.file = file
            self.line = line
        }

        /// `portcullis.yaml:14`
        package var text: String { "\(file):\(line)" }
    }

    package let severity: Severity
    package let place: Place
    /// Keys and indices from the root of the file: `origins.shop.servers[1]`; empty for the root.
    package let keyPath: String
    package let found: String
    /// The allowed values, or the next step.
    package let use: String

    package init(
        _ severity: Severity,
        at place: Place,
        _ keyPath: String,
        found: String,
        use: String
    ) {
        self.severity = severity
        self.place = place
        self.keyPath = keyPath
        self.found = found
        self.use = use
    }

    /// `portcullis.yaml:14: limits.head: found 12B; use 1KiB…1MiB`
    package var text: String {
        let key = keyPath.isEmpty ? "" : "\(keyPath): "
        let prefix = severity == .warning ? "warning: " : ""
        return "\(place.text): \(prefix)\(key)found \(found); use \(use)"
    }
}

extension Problem {
    /// By file, in the order in which the files were first named, then by line.
    package static func sorted(_ problems: [Problem]) -> [Problem] {
        var files: [String: Int] = [:]
        for problem in problems where files[problem.place.file] == nil {
            files[problem.place.file] = files.count
        }
        return problems.enumerated().sorted { left, right in
            let (one, other) = (left.element.place, right.element.place)
            return (files[one.file] ?? 0, one.line, left.offset)
                < (files[other.file] ?? 0, other.line, right.offset)
        }.map(\.element)
    }
}

/// A part of a configuration, with what problems say of it.
package protocol Placed {
    var place: Problem.Place { get }
    var keyPath: String { get }
}

/// The problems of one load, in the order in which they are found. Local to the load.
package final class ProblemLog {
    package private(set) var problems: [Problem] = []
    /// The record of the readers' look-ups; `nil` where it is not needed.
    package var record: ReadingRecord?
    /// The places of all keys and values that were read, by key path.
    package private(set) var places: [String: Problem.Place] = [:]
    /// The configuration's folder, from which relative paths count.
    package var folder = ""
    /// The variables of the environment; `nil` where texts stay as they are written, as the
    /// requests of test cases do.
    package let variables: ReadingVariables?
    /// What is absent and assumed; `nil` where an absence is a problem.
    package var assumptions: Assumptions?
    private var known: Set<Problem> = []

    /// - variable: the value of a variable of the environment.
    /// - isOffline: whether what is absent is assumed.
    package init(
        isOffline: Bool = false,
        variable: @escaping (String) -> String? = { _ in nil }
    ) {
        variables = ReadingVariables(value: variable)
        assumptions = isOffline ? Assumptions() : nil
    }

    /// A log for files whose texts stay as they are written.
    package static var ofCases: ProblemLog { ProblemLog(variables: nil) }

    private init(variables: ReadingVariables?) { self.variables = variables }

    package func error(_ place: Problem.Place, _ keyPath: String, found: String, use: String) {
        add(Problem(.error, at: place, keyPath, found: found, use: use))
    }

    package func warning(_ place: Problem.Place, _ keyPath: String, found: String, use: String) {
        add(Problem(.warning, at: place, keyPath, found: found, use: use))
    }

    package func error(_ part: some Placed, found: String, use: String) {
        error(part.place, part.keyPath, found: found, use: use)
    }

    package func warning(_ part: some Placed, found: String, use: String) {
        warning(part.place, part.keyPath, found: found, use: use)
    }

    /// Reports a text that was at an earlier place, too.
    ///
    /// - places: where each text was first.
    package func claim(
        _ text: Located<String>,
        in places: inout [String: Problem.Place],
        use: String
    ) {
        guard let first = places[text.value] else {
            places[text.value] = text.place
            return
        }
        error(text, found: "\(text.value), which is already at \(first.text)", use: use)
    }

    /// Notes where a key stands, or its value.
    package func note(_ place: Problem.Place, of keyPath: String) { places[keyPath] = place }

    /// A value with the place of its key.
    package func located<Value>(_ keyPath: String, _ value: Value) -> Located<Value> {
        Located(value: value, place: places.place(of: keyPath), keyPath: keyPath)
    }

    package private(set) var hasErrors = false

    /// By file, in the order in which the files were first named, then by line.
    package var sorted: [Problem] { Problem.sorted(problems) }

    private func add(_ problem: Problem) {
        if problem.severity == .error { hasErrors = true }
        if known.insert(problem).inserted { problems.append(problem) }
    }
}

extension [String: Problem.Place] {
    /// The place of a key path; for one without a place, that of the nearest mapping or list around
    /// it.
    package func place(of keyPath: String) -> Problem.Place {
        var path = keyPath[...]
        while !path.isEmpty {
            if let place = self[String(path)] { return place }
            path = path.lastIndex { $0 == "." || $0 == "[" }.map { path[..<$0] } ?? ""
        }
        return self[""] ?? Problem.Place(file: "", line: 1)
    }
}

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
    package static func use(_ use: String, for word: String, among candidates: [String]) -> String {
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
    package func unknown(_ kind: String, _ name: Located<String>, among defined: [String]) {
        let use = defined.isEmpty ? "\(kind)s that define it" : defined.joined(separator: " | ")
        error(
            name,
            found: "the unknown \(kind) \(SourceNode.quoted(name.value))",
            use: Suggestion.use(use, for: name.value, among: defined)
        )
    }
}
