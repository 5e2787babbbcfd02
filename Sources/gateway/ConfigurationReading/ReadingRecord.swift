/// The look-ups of readers in a file: the keys of its mappings, and the allowed texts.
///
/// ``ConfigurationSchema`` is made from it. Local to one reading.
final class ReadingRecord {
    /// The form of a text, where a schema can say more than that it is one.
    enum Form: Hashable {
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
    struct Text: Hashable {
        /// The allowed values, in the words of problems.
        let use: String
        /// Words that are allowed there; others may be allowed too.
        var words: [String] = []
        var form = Form.text
        /// Whether `${NAME}` may stand in it.
        private(set) var takesVariables = false

        var takingVariables: Text {
            var text = self
            text.takesVariables = true
            return text
        }

        /// The allowed values, for tables: `(${NAME})` says that variables may stand in the text.
        var allowed: String { takesVariables ? "\(use) (${NAME})" : use }

        /// Whether only these words are allowed.
        var isClosed: Bool {
            [" | ", ", "].contains { use == words.joined(separator: $0) }
        }
    }

    /// The keys of each mapping, by key path.
    private(set) var mappings: [String: [String]] = [:]
    /// The allowed texts, by key path.
    private(set) var texts: [String: Text] = [:]
    /// The key paths of mandatory keys.
    private(set) var demands: Set<String> = []
    /// The meanings of declared keys, by key path.
    private(set) var notes: [String: KeyNotes] = [:]

    func mapping(_ keyPath: String, _ keys: [String]) { mappings[keyPath] = keys }

    func text(_ keyPath: String, _ text: Text) { texts[keyPath] = text }

    func note(_ keyPath: String, _ notes: KeyNotes) { self.notes[keyPath] = notes }

    func demand(_ keyPath: String) { demands.insert(keyPath) }
}
