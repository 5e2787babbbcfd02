/// The targets of Package.swift and what each declares that it uses.
struct Manifest {
    struct Target {
        enum Kind { case part, program, cLibrary, tests }

        let name: String
        let kind: Kind
        /// Names of targets and products, as they are imported.
        let uses: [String]
    }

    let targets: [Target]
    private let byName: [String: Target]

    /// Reads the entries of the target list: `.part("Name", in: "group", uses: ["Other"] + list)`,
    /// `.recipes(…)`, `.program(…)`, `.testProgram(…)`, `.bridge(…)`, `.tests(…)`,
    /// `.scenarios(…)`, `.support(…)`, `.sample(…)` and the package manager's own forms.
    init(source: SwiftSource) {
        var reader = Reader(source: source)
        for index in source.tokens.indices { reader.readConstant(at: index) }
        targets = source.tokens.indices.compactMap { reader.target(at: $0) }
        byName = Dictionary(targets.map { ($0.name, $0) }) { first, _ in first }
    }

    subscript(name: String) -> Target? { byName[name] }

    /// Everything that a target is linked with, itself included.
    func closure(of name: String) -> Set<String> {
        var found: Set<String> = []
        var waiting = [name]
        while let next = waiting.popLast() {
            guard found.insert(next).inserted else { continue }
            waiting += byName[next]?.uses ?? []
        }
        return found
    }
}

extension Manifest {
    private struct Reader {
        let source: SwiftSource
        /// What the constants above the target list stand for: `let crypto: Target.Dependency = …`,
        /// `let verdict: [Target.Dependency] = …` and `let grdb = product("GRDB", of: "…")`.
        private var constants: [String: [String]] = [:]

        init(source: SwiftSource) {
            self.source = source
        }

        mutating func readConstant(at index: Int) {
            let isOne = source.reads(index + 2, ":", "Target", ".", "Dependency", "=")
            let isList = source.reads(index + 2, ":", "[", "Target", ".", "Dependency", "]", "=")
            let isProduct = source.reads(index + 2, "=", "product", "(")
            guard source.reads(index, "let"), isOne || isList || isProduct else { return }
            let start = index + (isOne ? 7 : isList ? 9 : 4)
            constants[source.token(index, 1).text] = names(from: start)
        }

        func target(at index: Int) -> Target? {
            guard source.reads(index, "."), source.reads(index + 2, "("),
                let kind = Self.kind(source.token(index, 1).text)
            else { return nil }
            let close = source.closing(index + 2)
            var place = index + 3
            if source.reads(place, "name", ":") { place += 2 }
            guard source.token(place).kind == .string else { return nil }
            let name = source.token(place).text
            var uses: [String] = []
            while place < close {
                if source.reads(place, "uses", ":") || source.reads(place, "dependencies", ":") {
                    uses = names(from: place + 2)
                    break
                }
                place += 1
            }
            // The manifest's own short forms add what all tests use; `tests` also gives the name
            // and the use of their part.
            let shared = "Expectations"
            switch source.token(index, 1).text {
            case "tests":
                return Target(name: name + "Tests", kind: kind, uses: uses + [name, shared])
            case "scenarios": return Target(name: name, kind: kind, uses: uses + [shared])
            default: return Target(name: name, kind: kind, uses: uses)
            }
        }

        private static func kind(_ word: String) -> Target.Kind? {
            switch word {
            case "part", "recipes", "target": .part
            case "program", "testProgram", "executableTarget": .program
            case "bridge": .cLibrary
            case "tests", "testTarget", "scenarios", "support", "sample": .tests
            default: nil
            }
        }

        /// The names in an expression of lists and constants, which ends at a comma, at the bracket
        /// around it, or where the next declaration begins.
        private func names(from start: Int) -> [String] {
            var names: [String] = []
            var depth = 0
            var place = start
            while place < source.tokens.count {
                let token = source.token(place)
                switch (token.kind, token.text) {
                case (.string, let text): names.append(text)
                case (.punctuation, "("), (.punctuation, "["): depth += 1
                case (.punctuation, ")"), (.punctuation, "]"):
                    depth -= 1
                    if depth < 0 { return names }
                case (.punctuation, ",") where depth == 0: return names
                case (.word, "let"), (.word, "extension"): return names
                // `.product(name: …, package: …)`, `product(…, of: …)`: the package's name is no
                // module.
                case (.word, "package"), (.word, "of"): place += 2
                // `condition: .when(…)`: what it names is no module.
                case (.word, "condition") where source.reads(place + 1, ":", ".", "when", "("):
                    place = source.closing(place + 4)
                case (.word, let text): names += constants[text] ?? []
                default: break
                }
                place += 1
            }
            return names
        }
    }
}
