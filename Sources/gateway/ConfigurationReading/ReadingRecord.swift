/// What readers have asked of a file: the keys of its mappings, and what its texts may be.
///
/// ``ConfigurationSchema`` is made of it. Local to one reading.
final class ReadingRecord {
    /// How a text is written, where a schema can say more than that it is one.
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

    /// What is taken at one place.
    struct Text: Hashable {
        /// As problems say it.
        let use: String
        /// Words that may stand there; maybe not all that may.
        let words: [String]
        let form: Form

        /// Whether nothing but the words may stand there.
        var isClosed: Bool {
            [" | ", ", "].contains { use == words.joined(separator: $0) }
        }
    }

    /// The keys of each mapping, by key path.
    private(set) var mappings: [String: [String]] = [:]
    /// What is taken where a text stands, by key path.
    private(set) var texts: [String: Text] = [:]
    /// The key paths of mandatory keys.
    private(set) var demands: Set<String> = []

    func mapping(_ keyPath: String, _ keys: [String]) { mappings[keyPath] = keys }

    func text(_ keyPath: String, use: String, words: [String] = [], _ form: Form = .text) {
        texts[keyPath] = Text(use: use, words: words, form: form)
    }

    func demand(_ keyPath: String) { demands.insert(keyPath) }
}
