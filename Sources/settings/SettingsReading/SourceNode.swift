import Yams

/// A piece of a YAML file: text, a list or a mapping, with the line where it begins.
package struct SourceNode: Sendable {
    /// A key of a mapping with its value.
    package struct Member: Sendable {
        package let key: String
        package let place: Problem.Place
        package let value: SourceNode

        package init(key: String, place: Problem.Place, value: SourceNode) {
            (self.key, self.place, self.value) = (key, place, value)
        }
    }

    package enum Content: Sendable {
        /// A scalar of any form.
        case text(String)
        /// An empty plain scalar, `~` or `null`.
        case nothing
        case list([SourceNode])
        case mapping([Member])
    }

    package let place: Problem.Place
    package let content: Content

    package init(place: Problem.Place, content: Content) {
        (self.place, self.content) = (place, content)
    }

    /// The finding, for a problem.
    package var found: String {
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

    package static func append(_ members: some Collection<Member>, to out: inout [UInt8]) {
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
    package static func quoted(_ text: String) -> String {
        let printable = text.unicodeScalars.map { scalar in
            scalar.properties.generalCategory == .control ? "\u{FFFD}" : String(scalar)
        }
        let text = printable.joined()
        guard text.count > 60 else { return "\"\(text)\"" }
        return "\"\(text.prefix(40))…\(text.suffix(16))\""
    }
}

/// A value with its place.
package struct Located<Value>: Placed {
    package let value: Value
    package let place: Problem.Place
    package let keyPath: String

    package init(value: Value, place: Problem.Place, keyPath: String) {
        (self.value, self.place, self.keyPath) = (value, place, keyPath)
    }

    package func map<Other>(_ change: (Value) -> Other) -> Located<Other> {
        Located<Other>(value: change(value), place: place, keyPath: keyPath)
    }
}

extension Located: Sendable where Value: Sendable {}

extension SourceNode {
    /// The limits of one file.
    package enum Bounds {
        /// The most bytes.
        package static let bytesMax = 1 << 20
        /// The most pieces.
        package static let nodesMax = 100_000
        /// The deepest nesting. The deepest option has six levels.
        package static let depthMax = 32
        /// The most texts that look like an alias in a file that is parsed at all.
        ///
        /// All aliases are refused, but only after parsing. With more of them a few lines could
        /// take for ever to parse (each level repeats the one below).
        package static let aliasesMax = 16
        /// The most keys that are reported as written twice.
        package static let duplicatesMax = 32
    }

    /// Marks a key that occurs again later in its mapping. No other text begins with this byte: the
    /// file may not contain it.
    private static let duplicateMark = "\u{E000}"

    /// U+FEFF, which some editors write before a text. The parser would count it as a column, so
    /// that the first line would be indented.
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Reads a file of one YAML document.
    ///
    /// Places name the file as `file` does. `use` describes the expected contents, for an empty
    /// file.
    ///
    /// - Returns: `nil` when the file can't be read; the reason is then in the log.
    package static func read(
        _ bytes: [UInt8],
        file: String,
        use: String,
        log: ProblemLog
    ) -> SourceNode? {
        let top = Problem.Place(file: file, line: 1)
        guard bytes.count <= Bounds.bytesMax else {
            log.error(top, "", found: "\(bytes.count) bytes", use: "a file of at most 1MiB")
            return nil
        }
        let unmarked = bytes.dropFirst(bytes.starts(with: byteOrderMark) ? byteOrderMark.count : 0)
        guard let text = String(validating: unmarked, as: UTF8.self), !text.contains(duplicateMark)
        else {
            log.error(top, "", found: "bytes that are no UTF-8 text", use: "UTF-8")
            return nil
        }
        guard aliasCount(bytes) <= Bounds.aliasesMax else {
            log.error(top, "", found: "aliases (*name)", use: "the values themselves")
            return nil
        }
        guard let (parser, root) = parse(text, file: file, use: use, log: log) else { return nil }
        // Nodes reference their anchors weakly; only the parser keeps them.
        return withExtendedLifetime(parser) {
            var reader = TreeReader(file: file, log: log)
            return reader.node(root, line: 1, keyPath: "", depth: 0)
        }
    }

    /// Asterisks where an alias could begin, with a name after them.
    private static func aliasCount(_ bytes: [UInt8]) -> Int {
        var count = 0
        var last = UInt8(ascii: "\n")
        for (index, byte) in bytes.enumerated() {
            if byte == UInt8(ascii: "*"), mayPrecedeAlias(last),
                beginsWithAnchor(bytes[(index + 1)...])
            {
                count += 1
            }
            last = byte
        }
        return count
    }

    /// Whether an alias may follow a byte. The last bytes of the parser's further line ends are
    /// among them: U+0085, U+2028 and U+2029.
    private static func mayPrecedeAlias(_ byte: UInt8) -> Bool {
        " \t\r\n[{,:-?".utf8.contains(byte) || [0x85, 0xA8, 0xA9].contains(byte)
    }

    /// Whether a text begins with a name as the parser takes it for an anchor's: letters, digits,
    /// hyphens and underscores, and then white space or what may follow a value.
    private static func beginsWithAnchor(_ text: ArraySlice<UInt8>) -> Bool {
        let name = text.prefix { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard let next = text.dropFirst(name.count).first else { return !name.isEmpty }
        return !name.isEmpty && (" \t\r\n?:,]}%@`".utf8.contains(next) || next >= 0x80)
    }

    /// Parses. If a key occurs twice, marks the first one and parses again, so that this problem
    /// does not hide all others.
    private static func parse(
        _ text: String,
        file: String,
        use: String,
        log: ProblemLog
    ) -> (parser: Parser, root: Node)? {
        var text = text
        for _ in 0...Bounds.duplicatesMax {
            do {
                // The basic resolver resolves nothing: every scalar stays its text.
                let parser = try Parser(yaml: text, resolver: .basic, encoding: .utf8)
                guard let root = try parser.singleRoot() else {
                    let top = Problem.Place(file: file, line: 1)
                    log.error(top, "", found: "an empty file", use: use)
                    return nil
                }
                return (parser, root)
            } catch let YamlError.duplicatedKeysInMapping(_, context) {
                guard let marked = mark(text, at: context.mark) else {
                    let place = Problem.Place(file: file, line: context.mark.line)
                    log.error(place, "", found: "a key twice in one mapping", use: "it once")
                    return nil
                }
                text = marked
            } catch {
                let fault = SyntaxFault(error, in: text)
                let place = Problem.Place(file: file, line: fault.line)
                log.error(place, "", found: fault.found, use: fault.use)
                return nil
            }
        }
        let top = Problem.Place(file: file, line: 1)
        log.error(top, "", found: "many repeated keys", use: "each key once")
        return nil
    }

    /// Writes the mark into the key that begins at a place, after its quote if it has one.
    private static func mark(_ text: String, at mark: Mark) -> String? {
        var line = 1
        var column = 1
        var scalars = text.unicodeScalars
        for index in scalars.indices {
            if line == mark.line, column >= mark.column {
                let isQuote = scalars[index] == "\"" || scalars[index] == "'"
                let place = isQuote ? scalars.index(after: index) : index
                scalars.insert(contentsOf: duplicateMark.unicodeScalars, at: place)
                return String(scalars)
            }
            column += 1
            if endsLine(scalars, at: index) { (line, column) = (line + 1, 1) }
        }
        return nil
    }

    /// Whether the parser counts a line here: at LF, CR or both, and at the other line ends of YAML
    /// 1.1.
    private static func endsLine(
        _ scalars: String.UnicodeScalarView,
        at index: String.UnicodeScalarView.Index
    ) -> Bool {
        switch scalars[index] {
        case "\n", "\u{85}", "\u{2028}", "\u{2029}": return true
        case "\r":
            let next = scalars.index(after: index)
            return next == scalars.endIndex || scalars[next] != "\n"
        default: return false
        }
    }

    /// Makes the tree of one file from the parser's nodes. Ends at the first node that it refuses.
    private struct TreeReader {
        package let file: String
        package let log: ProblemLog
        /// The nodes that the file may still have.
        package var budget = Bounds.nodesMax

        /// - line: that of the node around it, for a node without a line.
        package mutating func node(_ node: Node, line: Int, keyPath: String, depth: Int)
            -> SourceNode?
        {
            let place = Problem.Place(file: file, line: node.mark?.line ?? line)
            budget -= 1
            guard budget > 0, depth <= Bounds.depthMax else {
                let use = "at most \(Bounds.nodesMax) values, \(Bounds.depthMax) levels deep"
                log.error(place, "", found: "too large a tree", use: use)
                return nil
            }
            if let anchor = node.anchor {
                log.error(place, keyPath, found: "an anchor (&\(anchor))", use: "the value itself")
                return nil
            }
            let content: Content?
            switch node {
            case .scalar(let scalar):
                let isNothing = scalar.style == .plain && ["", "~", "null"].contains(scalar.string)
                content = isNothing ? Content.nothing : Content.text(scalar.string)
            case .sequence(let sequence):
                content = list(sequence, at: place, keyPath, depth: depth).map(Content.list)
            case .mapping(let mapping):
                content = members(mapping, at: place, keyPath, depth: depth).map(Content.mapping)
            case .alias:
                log.error(place, keyPath, found: "an alias", use: "the value itself")
                content = nil
            }
            return content.map { SourceNode(place: place, content: $0) }
        }

        private mutating func list(
            _ sequence: Node.Sequence,
            at place: Problem.Place,
            _ keyPath: String,
            depth: Int
        ) -> [SourceNode]? {
            var list: [SourceNode] = []
            for (index, element) in sequence.enumerated() {
                let path = "\(keyPath)[\(index)]"
                let inner = node(element, line: place.line, keyPath: path, depth: depth + 1)
                guard let inner else { return nil }
                list.append(inner)
            }
            return list
        }

        private mutating func members(
            _ mapping: Node.Mapping,
            at place: Problem.Place,
            _ keyPath: String,
            depth: Int
        ) -> [Member]? {
            var members: [Member] = []
            var names: Set<String> = []
            for (key, value) in mapping {
                let here = Problem.Place(file: file, line: key.mark?.line ?? place.line)
                guard case .scalar(let scalar) = key else {
                    log.error(here, keyPath, found: "a key that is no text", use: "a text")
                    return nil
                }
                var name = scalar.string
                let isDuplicate = name.hasPrefix(SourceNode.duplicateMark)
                name = String(name.drop { SourceNode.duplicateMark.contains($0) })
                let path = keyPath.isEmpty ? name : "\(keyPath).\(name)"
                // For the parser, a key with a tag is another one than the same text without.
                if isDuplicate || !names.insert(name).inserted {
                    log.error(here, path, found: "the key twice in one mapping", use: "it once")
                    continue
                }
                let inner = node(value, line: here.line, keyPath: path, depth: depth + 1)
                guard let inner else { return nil }
                members.append(Member(key: name, place: here, value: inner))
            }
            return members
        }
    }
}
