/// How files and types are called.
enum NameCheck {
    private static let typeWords: Set<String> = [
        "struct", "class", "enum", "actor", "protocol", "typealias", "extension", "macro",
    ]

    static func findings(in source: SwiftSource) -> [Finding] {
        emptyNames(in: source) + (source.isTest ? [] : misnamed(source))
    }

    private static func emptyNames(in source: SwiftSource) -> [Finding] {
        var findings: [Finding] = []
        let parts = source.path.dropLast(".swift".count).split { $0 == "/" || $0 == "+" }
        for part in parts {
            guard let word = emptyWord(in: String(part)) else { continue }
            findings.append(source.finding(0, "“\(word)” says nothing; name it after its noun"))
        }
        for (line, name) in declared(in: source, extensions: false) {
            guard let word = emptyWord(in: name) else { continue }
            let text = "\(name): “\(word)” says nothing; name the type after what it is"
            findings.append(source.finding(line, text))
        }
        return findings
    }

    /// The words of `SignalHandler` are Signal and Handler.
    private static func emptyWord(in name: String) -> String? {
        if Held.emptyNames.contains(name) { return name }
        var words: [String] = []
        for character in name {
            if character.isUppercase || words.isEmpty || !character.isLetter {
                words.append("")
            }
            words[words.count - 1].append(character)
        }
        return words.first { Held.emptyWords.contains($0) }
    }

    private static func declared(
        in source: SwiftSource,
        extensions: Bool
    ) -> [(line: Int, name: String)] {
        source.tokens.indices.compactMap { index in
            let token = source.token(index)
            guard token.kind == .word, typeWords.contains(token.text),
                extensions || token.text != "extension",
                source.token(index, 1).kind == .word, !source.reads(index - 1, ".")
            else { return nil }
            // `extension Outer.Inner` is about Inner, and about Outer.
            var name = source.token(index, 1).text
            var place = index + 2
            while token.text == "extension", source.reads(place, ".") {
                name += "." + source.token(place, 1).text
                place += 2
            }
            return (token.line, name)
        }
    }

    /// `Noun.swift` declares Noun; `Noun+Topic.swift` extends it. The file of the target's own name
    /// tells its story, and `main.swift` is a program's.
    private static func misnamed(_ source: SwiftSource) -> [Finding] {
        if source.name == "main" || storyNames(of: source.target).contains(source.name) {
            return []
        }
        let noun = source.name.split(separator: "+").first.map(String.init) ?? source.name
        let isExtension = source.name.contains("+")
        let found = declared(in: source, extensions: true).contains { _, name in
            name.split(separator: ".").contains { $0 == noun }
        }
        guard !found else { return [] }
        let text =
            isExtension
            ? "no extension of \(noun) in it; call it Noun+Topic.swift after what it extends"
            : "declares no \(noun); name the file after its main type, or Noun+Topic.swift"
        return [source.finding(0, text)]
    }

    /// `PortcullisDemo` and `portcullis-demo` for the program `portcullis-demo`.
    static func storyNames(of target: String) -> Set<String> {
        let joined = target.split(separator: "-").map { $0.prefix(1).uppercased() + $0.dropFirst() }
        return [target, joined.joined()]
    }

    /// What is wrong with the targets as a whole.
    static func findings(in manifest: Manifest, sources: [SwiftSource]) -> [Finding] {
        var findings: [Finding] = []
        let swiftTargets = Dictionary(grouping: sources.filter { !$0.isTest }, by: \.target)
        for (target, files) in swiftTargets.sorted(by: { $0.key < $1.key }) {
            let story = files.first {
                storyNames(of: target).contains($0.name) || $0.name == "main"
            }
            if let story {
                if story.comments.isEmpty {
                    findings.append(story.finding(0, "tell what the target is, in a comment"))
                }
            } else {
                let text = "no \(target).swift that tells what the target is"
                findings.append(Finding(path: "Sources/\(target)", line: 0, text: text))
            }
            findings += files.flatMap { namesakes(of: target, in: $0) }
        }
        for target in manifest.targets where Held.wellKnownModules.contains(target.name) {
            let text =
                "\(target.name) is a module of a well-known package, beside which this one could "
                + "not be built; give the target a name of its own"
            findings.append(Finding(path: "Package.swift", line: 0, text: text))
        }
        let lowered = Dictionary(grouping: manifest.targets.map(\.name)) { $0.lowercased() }
        for names in lowered.values where Set(names).count > 1 {
            let text = "targets that differ only in case: \(names.sorted().joined(separator: ", "))"
            findings.append(Finding(path: "Package.swift", line: 0, text: text))
        }
        return findings
    }

    /// A module's public type of the module's name hides the module (`Rules.Rules`).
    private static func namesakes(of target: String, in source: SwiftSource) -> [Finding] {
        source.tokens.indices.compactMap { index in
            guard typeWords.contains(source.token(index).text), source.reads(index + 1, target),
                source.reads(index - 1, "public") || source.reads(index - 2, "public")
            else { return nil }
            let text = "a public type of its module's name can't be qualified; give it another"
            return source.finding(source.token(index).line, text)
        }
    }
}
