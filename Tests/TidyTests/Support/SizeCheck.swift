/// How long things may be.
enum SizeCheck {
    static let columnsMax = 100
    static let linesMax = 600
    static let functionLinesMax = 70
    static let typeLinesMax = 800

    static func findings(in source: SwiftSource) -> [Finding] {
        file(source) + columns(path: source.path, lines: source.lines) + functions(source)
    }

    /// All files of a type together: `Noun.swift` and each `Noun+Topic.swift` of its target.
    static func types(_ sources: [SwiftSource]) -> [Finding] {
        let types = Dictionary(grouping: sources) { source in
            let file = source.path.split(separator: "/").last ?? ""
            return "\(source.target)/\(file.prefix { $0 != "+" && $0 != "." })"
        }
        return types.sorted { $0.key < $1.key }.compactMap { name, files in
            let count = files.reduce(0) { $0 + lineCount($1) }
            guard count > typeLinesMax else { return nil }
            let text = "\(name) has \(count) lines in all its files, \(typeLinesMax) at most"
            return files[0].finding(0, text + "; have parts of its state own themselves")
        }
    }

    private static func lineCount(_ source: SwiftSource) -> Int {
        source.lines.last?.isEmpty == true ? source.lines.count - 1 : source.lines.count
    }

    private static func file(_ source: SwiftSource) -> [Finding] {
        let count = lineCount(source)
        guard count > linesMax else { return [] }
        let text =
            "\(count) lines, \(linesMax) at most; move one noun or topic to a file of its own"
        return [source.finding(0, text)]
    }

    /// A line that is one unbreakable word, such as an address in a comment, may be longer.
    static func columns(path: String, lines: [Substring]) -> [Finding] {
        lines.enumerated().compactMap { index, line in
            guard line.utf8.count > columnsMax, line.count > columnsMax else { return nil }
            let words = line.split(separator: " ")
            if words.count <= 2, words.last?.contains("://") == true { return nil }
            let text = "\(line.count) columns, \(columnsMax) at most; break the line"
            return Finding(path: path, line: index + 1, text: text)
        }
    }

    private static func functions(_ source: SwiftSource) -> [Finding] {
        source.tokens.indices.compactMap { index in
            guard let name = functionName(index, in: source),
                let open = bodyStart(index, in: source)
            else { return nil }
            let first = source.token(index).line
            let count = source.token(source.closing(open)).line - first + 1
            guard count > functionLinesMax else { return nil }
            let text = "\(name) has \(count) lines, \(functionLinesMax) at most; name its steps"
            return source.finding(first, text)
        }
    }

    private static let functionWords: Set<String> = ["func", "init", "deinit", "subscript"]

    private static func functionName(_ index: Int, in source: SwiftSource) -> String? {
        let token = source.token(index)
        guard token.kind == .word, functionWords.contains(token.text),
            !source.reads(index - 1, ".")
        else { return nil }
        switch token.text {
        case "func": return source.token(index, 1).text
        case "init" where !source.reads(index + 1, ":"): return "init"
        case "deinit", "subscript": return token.text
        default: return nil
        }
    }

    /// The bracket that opens the body; `nil` for a requirement of a protocol.
    private static func bodyStart(_ index: Int, in source: SwiftSource) -> Int? {
        var place = index + 1
        while place < source.tokens.count {
            switch source.token(place).text {
            case "{" where source.token(place).kind == .punctuation: return place
            case "(" where source.token(place).kind == .punctuation:
                place = source.closing(place) + 1
            case "}", "func", "init", "var", "let", "case", "subscript", "deinit", "static":
                return nil
            default: place += 1
            }
        }
        return nil
    }
}
