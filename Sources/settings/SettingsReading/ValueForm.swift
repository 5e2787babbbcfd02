/// How a value is written in the configuration.
package struct ValueForm<Value>: Sendable {
    package typealias Reading = @Sendable (MappingReader, String) -> Located<Value>?

    package typealias Changes = @Sendable (Value, Value, String) -> [SettingChange]

    /// `nil` where the key is absent or has a problem, which is reported.
    package private(set) var located: Reading
    /// The value as a file writes it; `nil` where it does not fit on a line.
    package let text: @Sendable (Value) -> String?
    /// What differs in two values, by the key path of the key.
    package let changes: Changes
    /// Reads over a value that stands there. Only mappings do: keys that are absent keep theirs.
    private var over: (@Sendable (MappingReader, String, inout Value) -> Bool)?

    package init(
        _ located: @escaping Reading,
        text: @escaping @Sendable (Value) -> String? = { _ in nil },
        changes: @escaping Changes
    ) {
        (self.located, self.text, self.changes) = (located, text, changes)
    }

    /// A key that is absent or has a problem leaves the value as it is: then it returns `false`.
    package func read(_ reader: MappingReader, _ key: String, into value: inout Value) -> Bool {
        if let over { return over(reader, key, &value) }
        guard let found = located(reader, key) else { return false }
        value = found.value
        return true
    }

    /// The same form of a path, an address or a name: `${NAME}` may stand in its texts.
    package var takingVariables: ValueForm {
        var form = self
        form.located = { located($0.takingVariables, $1) }
        return form
    }

    /// The same form where absence stands for no value.
    package var orNone: ValueForm<Value?> {
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
    package init(
        _ located: @escaping Reading,
        text: @escaping @Sendable (Value) -> String? = { _ in nil }
    ) {
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
    package static var whole: ValueForm { ValueForm({ _, _ in nil }) }
}

extension ValueForm where Value: Declared {
    /// A mapping with the keys of the type. Those that are absent keep the value that they have.
    package static var mapping: ValueForm {
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
    package static func mapping(over standard: @escaping @Sendable (String) -> Value) -> ValueForm {
        declared { reader, key in
            let stated = Stated(reader, key, over: standard(reader.path(key)))
            guard let stated, stated.isComplete else { return nil }
            return reader.located(key, stated.value)
        }
    }

    /// A value with keys that may have other forms beside a mapping.
    package static func declared(_ located: @escaping Reading) -> ValueForm {
        ValueForm(located, changes: { Value.keys.changes(from: $0, to: $1, at: $2) })
    }
}
