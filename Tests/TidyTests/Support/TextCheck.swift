import Foundation

/// How long texts may be, and how often words that almost always stand for a sentence to be
/// rewritten are in texts and comments.
struct TextCheck {
    static let linesMax = 400
    static let indexLinesMax = 100
    static let frontLinesMax = 250
    /// What is left of the words. It only falls: lower it with each text that is rewritten.
    static let wordsMax = 14

    private static let words = [
        "nobody", "somebody", "so many", "so much", "anew", "who(?:ever)? it is", "is told",
        "are told", "goes by", "go by", "is of (?:no )?use", "as it were", "is left to",
        "behind (?:it|that|them|a |an |the )",
    ]

    /// The texts, by path inside the package.
    private let texts: [Project.TextFile]

    init() throws {
        let root = try Project.root()
        let names = FileManager.default.enumerator(atPath: root.path)
        var texts: [Project.TextFile] = []
        while let name = names?.nextObject() as? String {
            // What is built, and what Git keeps, is large.
            if [".build", ".git"].contains(name) { names?.skipDescendants() }
            guard name.hasSuffix(".md"), !name.contains(".build/") else { continue }
            let text = try String(contentsOf: root.appending(path: name), encoding: .utf8)
            texts.append(Project.TextFile(path: name, text: text))
        }
        self.texts = texts.sorted { $0.path < $1.path }
    }

    var lengths: [Finding] {
        texts.compactMap { text in
            let lines = text.text.split(separator: "\n", omittingEmptySubsequences: false).count - 1
            let max = linesMax(text.path)
            guard lines > max else { return nil }
            let advice = "\(lines) lines, \(max) at most; move a question to a page of its own"
            return Finding(path: text.path, line: 0, text: advice)
        }
    }

    /// An index stands beside a folder `docs`.
    private func linesMax(_ path: String) -> Int {
        guard path != "README.md" else { return Self.frontLinesMax }
        guard path != "CHANGELOG.md" else { return .max }
        let pages = path.dropLast("README.md".count) + "docs/"
        let isIndex = path.hasSuffix("/README.md") && texts.contains { $0.path.hasPrefix(pages) }
        return isIndex ? Self.indexLinesMax : Self.linesMax
    }

    /// How often the words are in the texts, and in the lines with comments of the sources.
    func wordCount(_ sources: [SwiftSource]) throws -> Int {
        let pattern = "\\b(?:" + Self.words.joined(separator: "|") + ")\\b"
        let expression = try NSRegularExpression(pattern: pattern, options: .caseInsensitive)
        let comments = sources.filter { $0.path.hasPrefix("Sources/") }.map { source in
            source.lines.filter { $0.contains("//") }.joined(separator: "\n")
        }
        return (texts.map(\.text) + comments).reduce(0) { count, text in
            let range = NSRange(text.startIndex..., in: text)
            return count + expression.numberOfMatches(in: text, range: range)
        }
    }
}
