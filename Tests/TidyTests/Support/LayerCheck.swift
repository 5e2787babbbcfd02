/// Which folders of a target may name whose types: those that no compiler keeps apart.
struct LayerCheck {
    /// The folders of the target, the lowest first.
    let folders: [String]
    /// The place of each type's folder in the order.
    private let owners: [String: Int]
    private let root: String

    init(_ root: String, _ folders: [String], _ sources: [SwiftSource]) {
        (self.root, self.folders) = (root, folders)
        var owners: [String: Int] = [:]
        for source in sources {
            guard let layer = Self.layer(of: source, root, folders) else { continue }
            for name in Self.types(in: source) { owners[name] = layer }
        }
        self.owners = owners
    }

    private static func layer(
        of source: SwiftSource,
        _ root: String,
        _ folders: [String]
    ) -> Int? {
        folders.firstIndex { source.path.hasPrefix("\(root)\($0)/") }
    }

    /// The types that a file declares outside of others.
    private static func types(in source: SwiftSource) -> [String] {
        let kinds: Set<String> = ["actor", "class", "enum", "protocol", "struct", "typealias"]
        var (names, depth): ([String], Int) = ([], 0)
        for (index, token) in source.tokens.enumerated() {
            switch token.text {
            case "{" where token.kind == .punctuation: depth += 1
            case "}" where token.kind == .punctuation: depth -= 1
            case let word where depth == 0 && token.kind == .word && kinds.contains(word):
                names.append(source.token(index, 1).text)
            default: break
            }
        }
        return names
    }

    /// Names of types of a higher folder. A member of another type has a dot before it.
    func findings(in source: SwiftSource) -> [Finding] {
        guard let layer = Self.layer(of: source, root, folders) else { return [] }
        return source.tokens.indices.compactMap { index in
            let token = source.token(index)
            guard token.kind == .word, !source.reads(index - 1, "."),
                let owner = owners[token.text], owner > layer
            else { return nil }
            return source.finding(
                token.line,
                "\(folders[layer]) lies below \(folders[owner]), which has \(token.text); "
                    + "take a protocol or a function of it as a parameter"
            )
        }
    }
}
