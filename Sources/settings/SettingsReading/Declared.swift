/// A type whose values are written as a mapping of the configuration: one declaration for each key.
///
/// From the declaration follow the reading with its problems, the schema and the pages of reference
/// with meanings and defaults, the report of what differs between two files, and whether a reload
/// takes a change.
package protocol Declared: SendableMetatype {
    static var keys: Keys<Self> { get }
}

/// The declaration of one key.
package struct Key<Section>: Sendable {
    package typealias Path<Value> = any WritableKeyPath<Section, Value> & Sendable
    fileprivate typealias Changes = @Sendable (Section, Section, String) -> [SettingChange]

    package let name: String
    package private(set) var notes = KeyNotes()
    /// An example of the key, for a mapping without it; `nil` for a key that may be left out.
    package private(set) var example: String?
    /// Reads the key over the section's value, which stays where the key is absent or has a
    /// problem: then it returns `false`.
    fileprivate let read: @Sendable (MappingReader, inout Section) -> Bool
    /// The section's value as a file writes it.
    package let text: @Sendable (Section) -> String?
    /// What differs in two sections, by the key path of the key.
    private(set) fileprivate var changes: Changes

    private init(
        name: String,
        read: @escaping @Sendable (MappingReader, inout Section) -> Bool = { _, _ in true },
        text: @escaping @Sendable (Section) -> String? = { _ in nil },
        changes: @escaping Changes = { _, _, _ in [] }
    ) {
        (self.name, self.read, self.text, self.changes) = (name, read, text, changes)
    }

    /// A key with a value of its own in the section.
    package init<Value>(_ name: String, _ path: Path<Value>, _ form: ValueForm<Value>) {
        self.init(
            name: name,
            read: { form.read($0, name, into: &$1[keyPath: path]) },
            text: { form.text($0[keyPath: path]) },
            changes: { form.changes($0[keyPath: path], $1[keyPath: path], $2) }
        )
    }

    /// A key without which the section's value is `nil`.
    package init<Value>(_ name: String, orNone path: Path<Value?>, _ form: ValueForm<Value>) {
        self.init(name, path, form.orNone)
    }

    /// A key of whose mapping the values stand in this section.
    package init(_ name: String, _ keys: Keys<Section>) {
        self.init(
            name: name,
            read: { reader, section in
                guard let inner = reader.inner(name, keys: keys.names) else { return false }
                keys.read(inner, into: &section)
                return true
            },
            changes: { keys.changes(from: $0, to: $1, at: $2) }
        )
    }

    /// A key that is read in ``Keys/checked(_:)``, mostly together with others, or that is read
    /// again when the files that it names are read.
    package init(_ name: String) { self.init(name: name) }

    /// The same, with the value that comes of it. The form says what differs in two of them.
    package init<Value>(
        _ name: String,
        later path: any KeyPath<Section, Value> & Sendable,
        _ form: ValueForm<Value>
    ) {
        self.init(
            name: name,
            changes: { form.changes($0[keyPath: path], $1[keyPath: path], $2) }
        )
    }

    /// A key whose value is optional, and is read by a closure.
    package init<Value>(
        _ name: String,
        into path: Path<Value?>,
        _ value: @escaping @Sendable (MappingReader, String) -> Value?
    ) {
        self.init(
            name: name,
            read: { reader, section in
                section[keyPath: path] = value(reader, name)
                return section[keyPath: path] != nil
            }
        )
    }

    /// A key of a part of this section, beside its own keys.
    package init<Part>(_ key: Key<Part>, of path: Path<Part>) {
        self.init(
            name: key.name,
            read: { key.read($0, &$1[keyPath: path]) },
            text: { key.text($0[keyPath: path]) },
            changes: { key.changes($0[keyPath: path], $1[keyPath: path], $2) }
        )
        (notes, example) = (key.notes, key.example)
    }

    /// A key that is read in the place of one of another section.
    package init<Other>(like other: Key<Other>) {
        self.init(name: other.name)
        notes = other.notes
    }

    /// A key with a value that the section does not keep in this form, such as a file's path.
    package init<Value>(_ name: String, read form: ValueForm<Value>) {
        self.init(name: name, read: { reader, _ in form.located(reader, name) != nil })
    }

    /// What the value is, in a sentence or two.
    ///
    /// - otherwise: what holds without the key, where no value stands for it.
    package func means(_ meaning: String, otherwise: String? = nil) -> Key {
        with { ($0.notes.meaning, $0.notes.otherwise) = (meaning, otherwise) }
    }

    /// Another value by which to tell whether it has changed.
    package func comparing<Value: Equatable & Sendable>(
        _ path: any KeyPath<Section, Value> & Sendable
    ) -> Key {
        let part = Key(name, later: path, .whole)
        return with { $0.changes = part.changes }
    }

    /// The reason of the default.
    package func because(_ reason: String) -> Key { with { $0.notes.reason = reason } }

    /// What a change of it needs, and of all keys below it that need less.
    package func needs(_ need: ChangeNeed) -> Key { with { $0.notes.needs = need } }

    /// The version that had it first.
    package func since(_ version: String) -> Key { with { $0.notes.since = version } }

    /// A mapping without it is refused. The example is what to write.
    package func mandatory(_ example: String) -> Key { with { $0.example = example } }

    private func with(_ change: (inout Key) -> Void) -> Key {
        var key = self
        change(&key)
        return key
    }
}

/// The declarations of a section's keys.
package struct Keys<Section>: Sendable {
    package let all: [Key<Section>]
    /// Compares values and reads keys that belong together, after each key alone was read.
    private var check: @Sendable (MappingReader, inout Section) -> Void = { _, _ in }

    package init(@KeysBuilder<Section> _ keys: () -> [Key<Section>]) { all = keys() }

    /// The same keys, with what belongs together checked after they were read.
    package func checked(_ check: @escaping @Sendable (MappingReader, inout Section) -> Void)
        -> Keys
    {
        var keys = self
        keys.check = check
        return keys
    }

    package var names: [String] { all.map(\.name) }
    package var mandatory: [String] { all.filter { $0.example != nil }.map(\.name) }

    /// Reads the keys of a mapping that may have others, too.
    ///
    /// - Returns: the keys that are there and have no problem.
    @discardableResult
    package func read(_ reader: MappingReader, into section: inout Section) -> Set<String> {
        note(reader, section)
        let given = all.filter { key in key.read(reader, &section) && reader.has(key.name) }
        check(reader, &section)
        return Set(given.map(\.name))
    }

    /// Reports what is mandatory and absent. A record gets the meanings, and the defaults of the
    /// section.
    package func note(_ reader: MappingReader, _ section: Section? = nil) {
        for key in all {
            var notes = key.notes
            let hasStandard = key.example == nil && notes.otherwise == nil
            notes.standard = hasStandard ? section.flatMap(key.text) : nil
            reader.log.record?.note(reader.path(key.name), notes)
            if let example = key.example { reader.require(key.name, use: example) }
        }
    }

    /// What differs.
    ///
    /// - keyPath: that of the section; empty for the file's root.
    package func changes(from old: Section, to new: Section, at keyPath: String) -> [SettingChange]
    {
        all.flatMap { key in
            key.changes(old, new, keyPath.isEmpty ? key.name : "\(keyPath).\(key.name)").map {
                $0.needing(key.notes.needs)
            }
        }
    }
}

@resultBuilder package enum KeysBuilder<Section> {
    package static func buildExpression(_ key: Key<Section>) -> [Key<Section>] { [key] }

    package static func buildExpression(_ keys: [Key<Section>]) -> [Key<Section>] { keys }

    package static func buildBlock(_ keys: [Key<Section>]...) -> [Key<Section>] {
        keys.flatMap(\.self)
    }
}

extension MappingReader {
    /// A mapping inside this one whose keys are declared, and are then read one by one.
    package func inner<Section>(_ key: String, _ keys: Keys<Section>) -> MappingReader? {
        let inner = inner(key, keys: keys.names)
        if let inner { keys.note(inner) }
        return inner
    }
}

/// A section as a file states it: its value, and the places of its keys.
package struct Stated<Section: Declared>: Placed {
    package private(set) var value: Section
    package let reader: MappingReader
    private let given: Set<String>

    package var place: Problem.Place { reader.place }
    package var keyPath: String { reader.keyPath }

    /// Reads a mapping over a value: what the mapping does not say stays as it is.
    ///
    /// - Returns: `nil` where the node is absent, or no mapping, which is a problem.
    package init?(
        _ node: SourceNode?,
        at keyPath: String,
        over value: Section,
        keys: Keys<Section> = Section.keys,
        _ log: ProblemLog
    ) {
        guard let node, let reader = MappingReader(node, keyPath, keys: keys.names, log: log)
        else { return nil }
        self.init(reader, over: value, keys: keys)
    }

    /// The same for a mapping that may have other keys, too.
    package init(_ reader: MappingReader, over value: Section, keys: Keys<Section> = Section.keys) {
        self.value = value
        self.reader = reader
        given = keys.read(reader, into: &self.value)
    }

    /// The same for the mapping at a key.
    package init?(_ reader: MappingReader, _ key: String, over value: Section) {
        self.init(reader.node(key), at: reader.path(key), over: value, reader.log)
    }

    /// The value of a key that is there and has no problem.
    package func located<Value>(_ key: String, _ path: KeyPath<Section, Value>) -> Located<Value>? {
        guard given.contains(key) else { return nil }
        return reader.located(key, value[keyPath: path])
    }

    /// Whether all mandatory keys are there and have no problem.
    package var isComplete: Bool { gives(Section.keys.mandatory) }

    /// Whether these keys are there and have no problem.
    package func gives(_ keys: [String]) -> Bool { given.isSuperset(of: keys) }
}
