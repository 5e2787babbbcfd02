/// Public names say what they are.
enum DocumentationCheck {
    private static let declarations: Set<String> = [
        "struct", "class", "enum", "actor", "protocol", "typealias", "func", "var", "let", "init",
        "subscript", "macro",
    ]
    private static let modifiers: Set<String> = [
        "static", "final", "mutating", "consuming", "borrowing", "nonisolated", "indirect",
        "convenience", "required", "override", "private", "fileprivate", "internal", "set", "(",
        ")", "nonmutating", "lazy", "weak", "unsafe", "prefix", "postfix", "class",
    ]
    /// What the standard library has documented already.
    private static let known: Set<String> = [
        "=", "<", "hash", "description", "debugDescription", "encode", "hashValue",
    ]

    static func findings(in source: SwiftSource) -> [Finding] {
        guard !source.isTest else { return [] }
        return source.tokens.indices.compactMap { index in
            guard source.reads(index, "public") || source.reads(index, "open"),
                let name = declaredName(after: index, in: source), !known.contains(name)
            else { return nil }
            let line = source.token(index).line
            guard !source.remark(at: line).contains("///") else { return nil }
            return source.finding(
                line,
                "public \(name) has no doc comment: say what it is or answers"
            )
        }
    }

    /// The name of what is declared; `nil` for an import or an extension.
    private static func declaredName(after index: Int, in source: SwiftSource) -> String? {
        var place = index + 1
        while place < source.tokens.count {
            let text = source.token(place).text
            let next = source.token(place, 1)
            if text == "init" || text == "subscript" { return text }
            if declarations.contains(text), !(text == "class" && declarations.contains(next.text)) {
                return next.text
            }
            guard modifiers.contains(text) else { return nil }
            place += 1
        }
        return nil
    }
}
