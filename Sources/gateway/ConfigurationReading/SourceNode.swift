/// A piece of a YAML file: text, a list or a mapping, with the line where it begins.
struct SourceNode: Sendable {
    /// A key of a mapping with its value.
    struct Member: Sendable {
        let key: String
        let place: Problem.Place
        let value: SourceNode
    }

    enum Content: Sendable {
        /// A scalar, whatever it looks like.
        case text(String)
        /// An empty plain scalar, `~` or `null`.
        case nothing
        case list([SourceNode])
        case mapping([Member])
    }

    let place: Problem.Place
    let content: Content

    /// What was found, for a problem.
    var found: String {
        switch content {
        case .text(let text): Self.quoted(text)
        case .nothing: "nothing"
        case .list: "a list"
        case .mapping: "a mapping"
        }
    }

    /// A text as messages show it: between quotes, its middle left out when it is long.
    static func quoted(_ text: String) -> String {
        let printable = text.unicodeScalars.map { scalar in
            scalar.properties.generalCategory == .control ? "\u{FFFD}" : String(scalar)
        }
        let text = printable.joined()
        guard text.count > 60 else { return "\"\(text)\"" }
        return "\"\(text.prefix(40))…\(text.suffix(16))\""
    }
}

/// A value with the place where it stands.
struct Located<Value> {
    let value: Value
    let place: Problem.Place
    let keyPath: String

    func map<Other>(_ change: (Value) -> Other) -> Located<Other> {
        Located<Other>(value: change(value), place: place, keyPath: keyPath)
    }
}

extension Located: Sendable where Value: Sendable {}
