/// A piece of a YAML file: text, a list or a mapping, with the line where it begins.
struct SourceNode: Sendable {
    /// A key of a mapping with its value.
    struct Member: Sendable {
        let key: String
        let place: Problem.Place
        let value: SourceNode
    }

    enum Content: Sendable {
        /// A scalar of any form.
        case text(String)
        /// An empty plain scalar, `~` or `null`.
        case nothing
        case list([SourceNode])
        case mapping([Member])
    }

    let place: Problem.Place
    let content: Content

    /// The finding, for a problem.
    var found: String {
        switch content {
        case .text(let text): Self.quoted(text)
        case .nothing: "nothing"
        case .list: "a list"
        case .mapping: "a mapping"
        }
    }

    /// A text for messages: in quotes, its middle omitted when it is long.
    static func quoted(_ text: String) -> String {
        let printable = text.unicodeScalars.map { scalar in
            scalar.properties.generalCategory == .control ? "\u{FFFD}" : String(scalar)
        }
        let text = printable.joined()
        guard text.count > 60 else { return "\"\(text)\"" }
        return "\"\(text.prefix(40))…\(text.suffix(16))\""
    }
}

/// A value with its place.
struct Located<Value> {
    let value: Value
    let place: Problem.Place
    let keyPath: String

    func map<Other>(_ change: (Value) -> Other) -> Located<Other> {
        Located<Other>(value: change(value), place: place, keyPath: keyPath)
    }
}

extension Located: Sendable where Value: Sendable {}
