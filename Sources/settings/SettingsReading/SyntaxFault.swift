import Yams

/// Why a text is no YAML, in an operator's words: the line, what is there, and what to write.
///
/// The parser names the place at which it could not go on. The mistake is often before it: a tab, a
/// colon without a space on the line above, a bracket that nothing closes.
struct SyntaxFault {
    private static let quotes = "quotes around texts that begin with one of *&!%@`[{#|>"
    private static let indentation = "the same indentation for all keys of one mapping"

    /// From 1.
    let line: Int
    let found: String
    let use: String

    private init(line: Int, found: String, use: String) {
        self.line = line
        self.found = found
        self.use = use
    }

    /// - text: what was parsed.
    init(_ error: any Error, in text: String) {
        switch error {
        case YamlError.scanner(let context, let problem, let mark, _),
            YamlError.parser(let context, let problem, let mark, _),
            YamlError.composer(let context, let problem, let mark, _):
            let lines = text.split(omittingEmptySubsequences: false) { $0.isNewline }
            let began = context?.mark.line ?? mark.line
            self =
                Self.tab(in: lines, at: mark.line)
                ?? Self.colon(in: lines, at: [began, mark.line])
                ?? Self.other(problem, in: lines, at: mark.line, began: began)
        case YamlError.reader(let problem, _, _, _):
            self.init(
                line: 1,
                found: "no YAML (\(problem))",
                use: "text without control characters"
            )
        default: self.init(line: 1, found: "no YAML", use: "YAML 1.2")
        }
    }

    /// A tab where a line begins.
    private static func tab(in lines: [Substring], at line: Int) -> SyntaxFault? {
        guard lines.indices.contains(line - 1),
            lines[line - 1].prefix(while: { " \t-".contains($0) }).contains("\t")
        else { return nil }
        return SyntaxFault(line: line, found: "a tab before the text of a line", use: "spaces")
    }

    /// `mode:enforce`, in one of some lines or in the last one with a text before them.
    private static func colon(in lines: [Substring], at places: [Int]) -> SyntaxFault? {
        for place in places where lines.indices.contains(place - 1) {
            let before = lines.indices.last { index in
                index < place - 1 && lines[index].contains { !$0.isWhitespace }
            }
            for index in [place - 1, before].compactMap({ $0 }) {
                let text = lines[index].drop { " -".contains($0) }
                guard !text.contains(": "),
                    let pair = text.prefixMatch(of: /([a-z_]+):([^\s\/:][^\s]*)\s*/),
                    pair.range.upperBound == text.endIndex
                else { continue }
                return SyntaxFault(
                    line: index + 1,
                    found: "\(pair.1):\(pair.2), without a space after the colon",
                    use: "\(pair.1): \(pair.2)"
                )
            }
        }
        return nil
    }

    /// - began: the line of what the parser was reading.
    private static func other(
        _ problem: String,
        in lines: [Substring],
        at line: Int,
        began: Int
    ) -> SyntaxFault {
        let found = "no YAML (\(problem))"
        let noticed = began == line ? "" : ", noticed in line \(line)"
        switch problem {
        case _ where problem.hasPrefix("did not find expected ',' or "):
            let found = "a [ or { without its end, or a comma that is missing\(noticed)"
            return SyntaxFault(line: began, found: found, use: "a ] for each [, a } for each {")
        case "found unexpected end of stream":
            return SyntaxFault(
                line: began,
                found: "a quote without its end\(noticed)",
                use: "two quotes around a text"
            )
        case "could not find expected ':'":
            return SyntaxFault(line: began, found: found, use: "a key, a colon, a space, a value")
        case "did not find expected '-' indicator":
            let use = "a hyphen before each entry of a list, and \(indentation)"
            return SyntaxFault(line: line, found: found, use: use)
        case "did not find expected key":
            let use = "\(indentation); a [, { or quote for each ], } or quote that ends a text"
            return SyntaxFault(line: line, found: found, use: use)
        case _ where problem.hasPrefix("mapping values are not allowed"):
            let text = lines.indices.contains(line - 1) ? lines[line - 1] : ""
            let isPair = text.split(separator: ": ").count > 2
            let use = isPair ? "quotes around a text that has a colon and a space" : indentation
            return SyntaxFault(line: line, found: found, use: use)
        case "but found another document":
            return SyntaxFault(line: line, found: found, use: "one document in a file, without ---")
        default: return SyntaxFault(line: line, found: found, use: "YAML 1.2; \(quotes)")
        }
    }
}
