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

    /// Appends what the node says, whatever its comments, layout and order of keys. Each piece has
    /// its length before it, so that no two contents have the same bytes.
    private func append(to out: inout [UInt8]) {
        switch content {
        case .nothing: out.append(UInt8(ascii: "0"))
        case .text(let text): Self.append(text, to: &out)
        case .list(let nodes):
            out += Array("[\(nodes.count) ".utf8)
            for node in nodes { node.append(to: &out) }
        case .mapping(let members): Self.append(members, to: &out)
        }
    }

    static func append(_ members: some Collection<Member>, to out: inout [UInt8]) {
        out += Array("{\(members.count) ".utf8)
        for member in members.sorted(by: { $0.key < $1.key }) {
            append(member.key, to: &out)
            member.value.append(to: &out)
        }
    }

    private static func append(_ text: String, to out: inout [UInt8]) {
        out += Array("\(text.utf8.count):".utf8) + Array(text.utf8)
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
struct Located<Value>: Placed {
    let value: Value
    let place: Problem.Place
    let keyPath: String

    func map<Other>(_ change: (Value) -> Other) -> Located<Other> {
        Located<Other>(value: change(value), place: place, keyPath: keyPath)
    }
}

extension Located: Sendable where Value: Sendable {}
