import Foundation

/// A text of the repository, as its fenced blocks and headings.
struct Document {
    /// A fenced block.
    struct Block {
        /// The word behind the fence: `sh`, `console`, `text`, `yaml`, ….
        let kind: String
        let lines: [String]
        /// The line of its opening fence, from 1.
        let line: Int
        /// Nothing but empty lines stands between the block before and this one.
        let followsBlock: Bool
    }

    /// Path inside the repository.
    let path: String
    let lines: [String]
    let blocks: [Block]
    /// The lines outside fenced blocks.
    let prose: [String]

    /// A text of the repository. Of Swift code, it is what the documentation comments say.
    init(_ path: String) throws {
        self.path = path
        var text = try String(contentsOf: Repository.folder.appending(path: path), encoding: .utf8)
        if path.hasSuffix(".swift") { text = Self.comments(in: text) }
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        var blocks: [Block] = []
        var prose: [String] = []
        var open: (kind: String, line: Int, follows: Bool)?
        var inside: [String] = []
        var follows = false
        for (index, line) in lines.enumerated() {
            let bare = line.drop { $0 == " " }
            switch open {
            case nil where bare.hasPrefix("```"):
                open = (String(bare.dropFirst(3)), index + 1, follows)
                inside = []
            case nil:
                prose.append(line)
                if !bare.isEmpty { follows = false }
            case let (kind, start, followed)? where bare == "```":
                blocks.append(
                    Block(kind: kind, lines: inside, line: start, followsBlock: followed)
                )
                open = nil
                follows = true
            case _?: inside.append(line)
            }
        }
        self.blocks = blocks
        self.prose = prose
    }

    /// The documentation comments of Swift code, each in its line.
    private static func comments(in code: String) -> String {
        code.split(separator: "\n", omittingEmptySubsequences: false)
            .map { line in
                let bare = line.drop { $0 == " " }
                return bare.hasPrefix("///") ? bare.dropFirst(bare.hasPrefix("/// ") ? 4 : 3) : ""
            }
            .joined(separator: "\n")
    }

    /// What GitHub makes of the headings for links to them.
    var anchors: Set<String> {
        Set(
            prose.filter { $0.hasPrefix("#") }.map { heading in
                let words = heading.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces)
                let kept = words.lowercased().filter {
                    $0.isLetter || $0.isNumber || " -_".contains($0)
                }
                return kept.replacing(" ", with: "-")
            }
        )
    }

    /// The text whose commands come before its own: `The commands continue those of [name](link)`.
    var continued: String? {
        prose.lazy.compactMap { $0.firstMatch(of: /continue those of \[[^\]]+\]\(([^)#]+)/) }.first
            .map { match in
                let folder = URL(filePath: "/" + path).deletingLastPathComponent()
                let file = folder.appending(path: String(match.1)).standardizedFileURL
                return String(file.path.dropFirst())
            }
    }

    /// What its links lead to, in the forms `[text](target)` and `[name]: target`.
    var links: [String] {
        prose.flatMap { line in
            line.matches(of: /\]\(([^)]+)\)/).map { String($0.1) }
                + line.matches(of: /^\[[^\]]+\]: (\S+)/).map { String($0.1) }
        }
    }
}
