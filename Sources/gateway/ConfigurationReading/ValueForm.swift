import HTTPWire
import Rules

/// How a value is written in the configuration.
struct ValueForm<Value>: Sendable {
    typealias Reading = @Sendable (MappingReader, String) -> Located<Value>?

    typealias Changes = @Sendable (Value, Value, String) -> [SettingChange]

    /// `nil` where the key is absent or has a problem, which is reported.
    let located: Reading
    /// The value as a file writes it; `nil` where it does not fit on a line.
    let text: @Sendable (Value) -> String?
    /// What differs in two values, by the key path of the key.
    let changes: Changes
    /// Reads over a value that stands there. Only mappings do: keys that are absent keep theirs.
    private var over: (@Sendable (MappingReader, String, inout Value) -> Bool)?

    init(
        _ located: @escaping Reading,
        text: @escaping @Sendable (Value) -> String? = { _ in nil },
        changes: @escaping Changes
    ) {
        (self.located, self.text, self.changes) = (located, text, changes)
    }

    /// A key that is absent or has a problem leaves the value as it is: then it returns `false`.
    func read(_ reader: MappingReader, _ key: String, into value: inout Value) -> Bool {
        if let over { return over(reader, key, &value) }
        guard let found = located(reader, key) else { return false }
        value = found.value
        return true
    }

    /// The same form where absence stands for no value.
    var orNone: ValueForm<Value?> {
        ValueForm<Value?>(
            { located($0, $1)?.map(Optional.some) },
            text: { $0.map(text) ?? "none" },
            changes: { old, new, keyPath in
                if let old, let new { return changes(old, new, keyPath) }
                guard old != nil || new != nil else { return [] }
                let (old, new) = (old.map(text) ?? "none", new.map(text) ?? "none")
                return [SettingChange(keyPath: keyPath, from: old, to: new)]
            }
        )
    }
}

extension ValueForm where Value: Equatable & Sendable {
    /// A value that differs as a whole.
    init(_ located: @escaping Reading, text: @escaping @Sendable (Value) -> String? = { _ in nil })
    {
        self.init(
            located,
            text: text,
            changes: { old, new, keyPath in
                guard old != new else { return [] }
                return [SettingChange(keyPath: keyPath, from: text(old), to: text(new))]
            }
        )
    }

    /// A value that is read elsewhere.
    static var whole: ValueForm { ValueForm({ _, _ in nil }) }
}

extension ValueForm where Value: Declared {
    /// A mapping with the keys of the type. Those that are absent keep the value that they have.
    static var mapping: ValueForm {
        var form = ValueForm.declared({ _, _ in nil })
        form.over = { reader, key, value in
            guard let stated = Stated(reader, key, over: value) else { return false }
            value = stated.value
            return true
        }
        return form
    }

    /// A mapping over a value with all defaults, which may know its key path. `nil` where a
    /// mandatory key is absent or has a problem.
    static func mapping(over standard: @escaping @Sendable (String) -> Value) -> ValueForm {
        declared { reader, key in
            let stated = Stated(reader, key, over: standard(reader.path(key)))
            guard let stated, stated.isComplete else { return nil }
            return reader.located(key, stated.value)
        }
    }

    /// A value with keys that may have other forms beside a mapping.
    static func declared(_ located: @escaping Reading) -> ValueForm {
        ValueForm(located, changes: { Value.keys.changes(from: $0, to: $1, at: $2) })
    }
}

extension ValueForm {
    /// A list of mappings, without those of which a mandatory key is absent or has a problem.
    static func list<Element: Declared & Equatable & Sendable>(
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
    static func named<Element>(
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
    static func named<Element: Declared>(
        _ name: @escaping @Sendable (Element) -> String,
        at place: @escaping @Sendable (_ all: String, _ name: String) -> String = { "\($0).\($1)" }
    ) -> ValueForm where Value == [Element] {
        named(name, at: place) { Element.keys.changes(from: $0, to: $1, at: $2) }
    }

    /// A list of texts that the closure understands, each of them once.
    ///
    /// - text: an element as a file writes it.
    /// - none: an empty list, for a key that may be left out.
    static func texts<Element: Hashable & Sendable>(
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

extension ValueForm where Value == Int {
    static func count(_ range: ClosedRange<Int>) -> ValueForm {
        ValueForm({ $0.integer($1, in: range) }, text: { "\($0)" })
    }

    /// A size, in bytes.
    static func bytes(_ range: ClosedRange<ByteCount>) -> ValueForm {
        ValueForm({ $0.bytes($1, in: range)?.map(\.rawValue) }, text: { ByteCount($0).text })
    }

    /// From 1 a second on.
    static func perSecond(of what: String, max: Int) -> ValueForm {
        ValueForm(
            { reader, key in
                reader.value(key, use: "\(what), 1/s…\(max)/s") { text in
                    let number = text.hasSuffix("/s") ? Int(digits: text.dropLast(2)) : nil
                    return number.flatMap { (1...max).contains($0) ? $0 : nil }
                }
            },
            text: { "\($0)/s" }
        )
    }

    /// `0%` to `100%`, without decimals.
    static var percent: ValueForm {
        ValueForm(
            { reader, key in
                reader.value(key, use: "a whole percentage, 0%…100%") { text in
                    let number = text.hasSuffix("%") ? Int(digits: text.dropLast()) : nil
                    return number.flatMap { (0...100).contains($0) ? $0 : nil }
                }
            },
            text: { "\($0)%" }
        )
    }
}

extension ValueForm where Value == Int {
    /// A time in whole days. What is left of it has no effect, which is a warning.
    static func days(_ range: ClosedRange<Int>) -> ValueForm {
        ValueForm(
            { reader, key in
                let least = Duration.days(Int64(range.lowerBound))
                let most = Duration.days(Int64(range.upperBound))
                return reader.count(key, of: .days(1), in: least...most)?.map { Int($0) }
            },
            text: { "\($0)d" }
        )
    }
}

extension ValueForm where Value == Int? {
    /// 1…1000000 with a unit, or `off`.
    static func orOff(unit: String) -> ValueForm {
        ValueForm({ $0.countOrOff($1, unit: unit) }, text: { $0.map { "\($0)\(unit)" } ?? "off" })
    }
}

extension ValueForm where Value == UInt64 {
    /// A time in whole milliseconds.
    static func milliseconds(_ range: ClosedRange<Duration>) -> ValueForm {
        ValueForm(
            { $0.duration($1, in: range)?.map { UInt64(clamping: $0.settingMilliseconds) } },
            text: { Duration.milliseconds($0).settingText }
        )
    }

    /// Bytes a second, 0B/s…1GiB/s.
    static var byteRate: ValueForm {
        ValueForm(
            { reader, key in
                reader.value(key, use: "bytes a second, 0B/s…1GiB/s") { text in
                    let size = text.hasSuffix("/s") ? ByteCount(text: text.dropLast(2)) : nil
                    return size.flatMap { $0 <= .gibibytes(1) ? UInt64($0.rawValue) : nil }
                }
            },
            text: { ByteCount(Int(clamping: $0)).text + "/s" }
        )
    }
}

extension ValueForm where Value == Int64 {
    /// A time in seconds; less than a second of it does not count, without a word.
    static func seconds(_ range: ClosedRange<Duration>) -> ValueForm {
        ValueForm(
            { $0.duration($1, in: range)?.map(\.components.seconds) },
            text: { Duration.seconds($0).settingText }
        )
    }
}

extension ValueForm where Value == Int64 {
    /// A time in whole seconds. What is left of it has no effect, which is a warning.
    static func wholeSeconds(_ range: ClosedRange<Duration>) -> ValueForm {
        ValueForm(
            { $0.count($1, of: .seconds(1), in: range) },
            text: { Duration.seconds($0).settingText }
        )
    }
}

extension ValueForm where Value == ByteCount {
    static func size(_ range: ClosedRange<ByteCount>) -> ValueForm {
        ValueForm({ $0.bytes($1, in: range) }, text: { $0.text })
    }
}

extension ValueForm where Value == [String] {
    /// A text, or a list of texts.
    static func oneOrMore(
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

extension ValueForm where Value == Duration {
    static func time(_ range: ClosedRange<Duration>) -> ValueForm {
        ValueForm({ $0.duration($1, in: range) }, text: { $0.settingText })
    }
}

extension ValueForm where Value == Bool {
    /// `true` or `false`.
    static var flag: ValueForm { ValueForm({ $0.flag($1) }, text: { "\($0)" }) }

    /// `on` or `off`.
    static var onOff: ValueForm {
        ValueForm(
            { $0.word($1, OnOff.self)?.map { $0 == .on } },
            text: { ($0 ? OnOff.on : .off).rawValue }
        )
    }
}

extension ValueForm where Value: RawRepresentable<String> & CaseIterable & Equatable & Sendable {
    /// One of the words of an enumeration.
    static var word: ValueForm { ValueForm({ $0.word($1, Value.self) }, text: { $0.rawValue }) }
}

extension ValueForm {
    /// A list of words of an enumeration, each of them once.
    static func words<Word: RawRepresentable<String> & CaseIterable & Hashable & Sendable>()
        -> ValueForm where Value == [Word]
    {
        let words = Word.allCases.map(\.rawValue)
        let use = words.joined(separator: ", ")
        return .texts(use, words: words, text: { $0.rawValue }, none: nil) { Word(rawValue: $0) }
    }
}

extension ValueForm where Value == String {
    /// A text that the closure understands.
    static func text(
        _ use: String,
        _ read: @escaping @Sendable (String) -> String?
    ) -> ValueForm {
        ValueForm({ $0.value($1, use: use, read) }, text: { $0.isEmpty ? nil : $0 })
    }

    /// A path that is not empty, in the file's spelling.
    static func file(_ use: String) -> ValueForm { text(use) { $0.isEmpty ? nil : $0 } }

    /// A path that is not empty. Unless it is absolute, it counts from the configuration's folder.
    static func path(_ use: String) -> ValueForm {
        ValueForm(
            { reader, key in
                reader.filePath(key, use: use)?.map { FilePath.joined(reader.log.folder, $0) }
            },
            text: { $0.isEmpty ? nil : $0 }
        )
    }
}
