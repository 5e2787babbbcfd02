// Values that are lists.

extension ValueForm {
    /// A list of mappings, without those of which a mandatory key is absent or has a problem.
    package static func list<Element: Declared & Equatable & Sendable>(
        of what: String,
        over standard: @escaping @Sendable (String) -> Element
    ) -> ValueForm where Value == [Element] {
        ValueForm({ reader, key in
            let nodes = reader.list(key, of: what)
            return nodes.map { nodes in
                let elements = nodes.compactMap { node, keyPath -> Element? in
                    let value = standard(keyPath)
                    let stated = Stated(node, at: keyPath, over: value, reader.log)
                    return stated.flatMap { $0.isComplete ? $0.value : nil }
                }
                return reader.located(key, elements)
            }
        })
    }

    /// Sections with names, which are read elsewhere: what differs in those of one name, and which
    /// of them come and go.
    ///
    /// - place: the key path of an element, by that of all and by its name.
    package static func named<Element>(
        _ name: @escaping @Sendable (Element) -> String,
        at place: @escaping @Sendable (_ all: String, _ name: String) -> String = { "\($0).\($1)" },
        changes: @escaping ValueForm<Element>.Changes
    ) -> ValueForm where Value == [Element] {
        ValueForm(
            { _, _ in nil },
            changes: { old, new, keyPath in
                let before = Dictionary(old.map { (name($0), $0) }) { first, _ in first }
                let now = Set(new.map(name))
                let kept = new.flatMap { element -> [SettingChange] in
                    let path = place(keyPath, name(element))
                    guard let was = before[name(element)] else {
                        return [SettingChange(keyPath: path, word: "added")]
                    }
                    return changes(was, element, path)
                }
                let gone = old.map(name).filter { !now.contains($0) }
                return kept
                    + gone.map { SettingChange(keyPath: place(keyPath, $0), word: "removed") }
            }
        )
    }

    /// Such sections of which each has keys of its own.
    package static func named<Element: Declared>(
        _ name: @escaping @Sendable (Element) -> String,
        at place: @escaping @Sendable (_ all: String, _ name: String) -> String = { "\($0).\($1)" }
    ) -> ValueForm where Value == [Element] {
        named(name, at: place) { Element.keys.changes(from: $0, to: $1, at: $2) }
    }

    /// A list of texts that the closure understands, each of them once.
    ///
    /// - text: an element as a file writes it.
    /// - none: an empty list, for a key that may be left out.
    package static func texts<Element: Hashable & Sendable>(
        _ what: String,
        words: [String] = [],
        text: (@Sendable (Element) -> String)? = nil,
        none: String? = "none",
        _ read: @escaping @Sendable (String) -> Element?
    ) -> ValueForm where Value == [Element] {
        ValueForm(
            { reader, key in
                reader.list(key, of: what, words: words, read).map { list in
                    reader.located(key, list.map(\.value))
                }
            },
            text: { list in
                guard let text else { return nil }
                return list.isEmpty ? none : list.map(text).joined(separator: ", ")
            }
        )
    }
}

extension ValueForm {
    /// A list of words of an enumeration, each of them once.
    package static func words<Word: RawRepresentable<String> & CaseIterable & Hashable & Sendable>()
        -> ValueForm where Value == [Word]
    {
        let words = Word.allCases.map(\.rawValue)
        let use = words.joined(separator: ", ")
        return .texts(use, words: words, text: { $0.rawValue }, none: nil) { Word(rawValue: $0) }
    }
}

extension ValueForm where Value == [String] {
    /// A text, or a list of texts.
    package static func oneOrMore(
        _ use: String,
        _ read: @escaping @Sendable (String) -> String?
    ) -> ValueForm {
        ValueForm(
            { reader, key in
                reader.texts(key, use: use, read).map { reader.located(key, $0.map(\.value)) }
            },
            text: { $0.isEmpty ? nil : $0.joined(separator: ", ") }
        )
    }
}
