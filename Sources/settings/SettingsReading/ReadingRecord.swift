/// The look-ups of readers in a file: the keys of its mappings, and the allowed texts.
///
/// ``ConfigurationSchema`` is made from it. Local to one reading.
package final class ReadingRecord {
    /// The form of a text, where a schema can say more than that it is one.
    package enum Form: Hashable {
        case text
        /// `true` or `false`.
        case flag
        case number(ClosedRange<Int>)
        /// A number of bytes with its unit.
        case size
        /// A number with a unit of time.
        case duration
    }

    /// The texts that are allowed at one place.
    package struct Text: Hashable {
        /// The allowed values, in the words of problems.
        package let use: String
        /// Words that are allowed there; others may be allowed too.
        package var words: [String]
        package var form: Form

        package init(use: String, words: [String] = [], form: Form = .text) {
            (self.use, self.words, self.form) = (use, words, form)
        }

        /// Whether `${NAME}` may stand in it.
        package private(set) var takesVariables = false

        package var takingVariables: Text {
            var text = self
            text.takesVariables = true
            return text
        }

        /// The allowed values, for tables: `(${NAME})` says that variables may stand in the text.
        package var allowed: String { takesVariables ? "\(use) (${NAME})" : use }

        /// Whether only these words are allowed.
        package var isClosed: Bool {
            [" | ", ", "].contains { use == words.joined(separator: $0) }
        }
    }

    /// The keys of each mapping, by key path.
    package private(set) var mappings: [String: [String]] = [:]
    /// The allowed texts, by key path.
    package private(set) var texts: [String: Text] = [:]
    /// The key paths of mandatory keys.
    package private(set) var demands: Set<String> = []
    /// The meanings of declared keys, by key path.
    package private(set) var notes: [String: KeyNotes] = [:]

    package init() {}

    package func mapping(_ keyPath: String, _ keys: [String]) { mappings[keyPath] = keys }

    package func text(_ keyPath: String, _ text: Text) { texts[keyPath] = text }

    package func note(_ keyPath: String, _ notes: KeyNotes) { self.notes[keyPath] = notes }

    package func demand(_ keyPath: String) { demands.insert(keyPath) }
}
