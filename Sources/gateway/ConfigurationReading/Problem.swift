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

    /// `portcullis.yaml:14: limits.head: found 12B; use 1KiB…1MiB`
    package var text: String {
        let key = keyPath.isEmpty ? "" : "\(keyPath): "
        let prefix = severity == .warning ? "warning: " : ""
        return "\(place.text): \(prefix)\(key)found \(found); use \(use)"
    }
}

extension Problem {
    /// A problem that was found after the file was read, at a place that
    /// ``GatewayConfiguration/place(of:)`` gives.
    package init(
        _ severity: Severity,
        _ place: Place,
        _ keyPath: String,
        found: String,
        use: String
    ) {
        self.init(severity: severity, place: place, keyPath: keyPath, found: found, use: use)
    }

    /// By file, in the order in which the files were first named, then by line.
    static func sorted(_ problems: [Problem]) -> [Problem] {
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
protocol Placed {
    var place: Problem.Place { get }
    var keyPath: String { get }
}

/// The problems of one load, in the order in which they are found. Local to the load.
final class ProblemLog {
    private(set) var problems: [Problem] = []
    /// The record of the readers' look-ups; `nil` where it is not needed.
    var record: ReadingRecord?
    private var known: Set<Problem> = []

    func error(_ place: Problem.Place, _ keyPath: String, found: String, use: String) {
        add(.error, place, keyPath, found, use)
    }

    func warning(_ place: Problem.Place, _ keyPath: String, found: String, use: String) {
        add(.warning, place, keyPath, found, use)
    }

    func error(_ part: some Placed, found: String, use: String) {
        add(.error, part.place, part.keyPath, found, use)
    }

    func warning(_ part: some Placed, found: String, use: String) {
        add(.warning, part.place, part.keyPath, found, use)
    }

    /// Reports a text that was at an earlier place, too.
    ///
    /// - places: where each text was first.
    func claim(_ text: Located<String>, in places: inout [String: Problem.Place], use: String) {
        guard let first = places[text.value] else {
            places[text.value] = text.place
            return
        }
        error(text, found: "\(text.value), which is already at \(first.text)", use: use)
    }

    private(set) var hasErrors = false

    /// By file, in the order in which the files were first named, then by line.
    var sorted: [Problem] { Problem.sorted(problems) }

    private func add(
        _ severity: Problem.Severity,
        _ place: Problem.Place,
        _ keyPath: String,
        _ found: String,
        _ use: String
    ) {
        let problem = Problem(
            severity: severity,
            place: place,
            keyPath: keyPath,
            found: found,
            use: use
        )
        if severity == .error { hasErrors = true }
        if known.insert(problem).inserted { problems.append(problem) }
    }
}
