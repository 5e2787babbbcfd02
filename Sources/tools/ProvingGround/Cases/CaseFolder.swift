import ConfigurationReading
import Foundation
package import LoopbackSockets

/// A folder with the cases: a folder for each group, a file of YAML for each case.
package struct CaseFolder: Sendable {
    /// The groups in the order in which they are played.
    package static let groups = [
        "signing", "fields", "enrolment", "holds", "recovery", "sessions", "plans",
        "not-the-gateway", "processes", "clocks", "lost-answers",
    ]

    /// All cases, by group and name.
    package let cases: [ProvingCase]

    /// Reads all cases.
    ///
    /// - Throws: what is wrong with each file, a line for each.
    package init(_ path: String) throws(ToolError) {
        let log = ProblemLog()
        var cases: [ProvingCase] = []
        let known = Self.files(path)
        guard !known.isEmpty else {
            throw ToolError(
                "no case in \(path); name the folder with --cases, which has \(Self.groups[0])/"
            )
        }
        for (group, name) in known {
            let file = "\(path)/\(group)/\(name).yaml"
            guard let data = FileManager.default.contents(atPath: file) else {
                throw ToolError("\(file): can't be read")
            }
            let fileLog = ProblemLog()
            let read = CaseReader(log: fileLog)
                .proving(Array(data), file: file, group: group, name: name)
            for problem in fileLog.problems {
                log.error(
                    problem.place,
                    problem.keyPath,
                    found: problem.found,
                    use: problem.use
                )
            }
            if let read { cases.append(read) }
        }
        guard !log.hasErrors else {
            throw ToolError(log.sorted.map(\.text).joined(separator: "\n"))
        }
        self.cases = cases
    }

    /// The cases that are named: `group` or `group/name`; all for no name.
    package func only(_ names: [String]) throws(ToolError) -> [ProvingCase] {
        guard !names.isEmpty else { return cases }
        for name in names where !cases.contains(where: { $0.isNamed(name) }) {
            let all = cases.map(\.path) + Self.groups
            let meant = Suggestion.closest(to: name, among: all).map { "; did you mean \($0)?" }
            throw ToolError("no case \(name)\(meant ?? ": --list names them")")
        }
        return cases.filter { proving in names.contains { proving.isNamed($0) } }
    }

    /// The cases of a short run: the first of each group, and those that say `always: true`.
    package static func short(of cases: [ProvingCase]) -> [ProvingCase] {
        var groups: Set<String> = []
        return cases.filter { groups.insert($0.group).inserted || $0.isAlways }
    }

    private static func files(_ path: String) -> [(group: String, name: String)] {
        groups.flatMap { group in
            let names = try? FileManager.default.contentsOfDirectory(atPath: "\(path)/\(group)")
            return (names ?? []).filter { $0.hasSuffix(".yaml") }.sorted()
                .map { (group, String($0.dropLast(".yaml".count))) }
        }
    }
}

extension ProvingCase {
    fileprivate func isNamed(_ name: String) -> Bool { group == name || path == name }
}
