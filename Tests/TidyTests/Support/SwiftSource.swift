/// A Swift file as the checks see it: tokens without comments, and comments without code.
struct SwiftSource {
    enum Kind {
        case word, number, punctuation
        /// A whole string literal; what it interpolates follows as tokens of its own.
        case string
        /// A raw identifier, without its backticks.
        case rawIdentifier
    }

    struct Token {
        let kind: Kind
        let text: String
        /// Counted from 1.
        let line: Int
        /// White space or a line's start stands before it.
        let isSpacedBefore: Bool
    }

    struct Comment {
        /// With its slashes.
        let text: String
        let firstLine: Int
        let lastLine: Int
    }

    /// Path inside the package, such as `Sources/base/Encodings/Hex.swift`.
    let path: String
    let lines: [Substring]
    let tokens: [Token]
    let comments: [Comment]

    init(path: String, text: String) {
        self.path = path
        let newline = UInt8(ascii: "\n")
        let pieces = text.utf8.split(separator: newline, omittingEmptySubsequences: false)
        lines = pieces.map { Substring($0) }
        var lexer = Lexer(text)
        lexer.run()
        tokens = lexer.tokens
        comments = lexer.comments
    }

    /// `Encodings` for `Sources/base/Encodings/Hex.swift`.
    var target: String { component(isTest ? 1 : 2) }

    var isTest: Bool { path.hasPrefix("Tests/") }

    /// `Hex.swift`.
    var fileName: String { path.split(separator: "/").last.map(String.init) ?? path }

    /// `Hex`.
    var name: String { String(fileName.dropLast(".swift".count)) }

    private func component(_ index: Int) -> String {
        let parts = path.split(separator: "/")
        return index < parts.count ? String(parts[index]) : ""
    }

    func finding(_ line: Int, _ text: String) -> Finding {
        Finding(path: path, line: line, text: text)
    }

    /// The token `offset` places after `index`; an empty one outside the file.
    func token(_ index: Int, _ offset: Int = 0) -> Token {
        let place = index + offset
        guard place >= 0, place < tokens.count else {
            return Token(kind: .punctuation, text: "", line: 0, isSpacedBefore: true)
        }
        return tokens[place]
    }

    /// Whether the token at `index` reads so. Asked of each token by several checks.
    func reads(_ index: Int, _ word: String) -> Bool {
        guard index >= 0, index < tokens.count, tokens[index].text == word else { return false }
        return tokens[index].kind != .string && tokens[index].kind != .rawIdentifier
    }

    /// Whether the tokens from `index` on read so.
    func reads(_ index: Int, _ words: String...) -> Bool {
        words.enumerated().allSatisfy { offset, word in
            let token = token(index, offset)
            return token.text == word && token.kind != .string && token.kind != .rawIdentifier
        }
    }

    /// The index of the bracket that closes the one at `index`; the file's last token when there is
    /// none.
    func closing(_ index: Int) -> Int {
        var depth = 0
        for place in index..<tokens.count where tokens[place].kind == .punctuation {
            switch tokens[place].text {
            case "(", "[", "{": depth += 1
            case ")", "]", "}":
                depth -= 1
                if depth == 0 { return place }
            default: break
            }
        }
        return tokens.count - 1
    }

    /// The comments directly above a line, past attributes, or on it. An attribute that older
    /// compilers don't know has its condition around it.
    func remark(at line: Int) -> String {
        let passed = ["@", "#if hasAttribute(", "#endif"]
        var above = line - 1
        while above > 0, passed.contains(where: lines[above - 1].trimmed.hasPrefix) { above -= 1 }
        var texts: [String] = comments.filter { $0.firstLine == line }.map(\.text)
        while let comment = comments.last(where: { $0.lastLine == above }) {
            guard lines[comment.firstLine - 1].trimmed.hasPrefix("/") else { break }
            texts.insert(comment.text, at: 0)
            above = comment.firstLine - 1
        }
        return texts.joined(separator: "\n")
    }
}

extension Substring {
    var trimmed: Substring {
        let start = drop { $0 == " " || $0 == "\t" }
        guard let last = start.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return "" }
        return start[...last]
    }
}
