/// What an import did, or why it did nothing.
package struct ImportReport: Sendable {
    /// A line that was not imported.
    package struct Problem: Hashable, Sendable, CustomStringConvertible {
        /// From 1.
        package let line: Int
        package let text: String

        package var description: String { "line \(line): \(text)" }
    }

    /// Problems that are listed; further ones are counted.
    package static let problemsMax = 1_000

    /// Lines that hold something.
    package internal(set) var lines = 0
    /// Keys that were not there before.
    package internal(set) var inserted = 0
    /// Keys that were there; their counter may have been raised.
    package internal(set) var merged = 0
    /// The first ``problemsMax`` problems, in the order of the lines.
    package private(set) var problems: [Problem] = []
    package private(set) var problemCount = 0
    /// Key ids that are not the SHA-256 of their public key.
    package internal(set) var strayCount = 0
    /// Whether anything was written.
    package internal(set) var isImported = false

    init() {}

    mutating func add(_ text: String, line: Int) {
        problemCount += 1
        if problems.count < Self.problemsMax { problems.append(Problem(line: line, text: text)) }
    }

    /// What the operator should know although it stopped nothing.
    package var warnings: [String] {
        guard strayCount > 0 else { return [] }
        return [
            "\(strayCount) key ids are not the SHA-256 of their public key: no device will ever "
                + "match them"
        ]
    }
}
