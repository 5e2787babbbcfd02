/// The JSON Schema of `portcullis.yaml` and of files of rules, for editors and CI.
///
/// There is no table for it. The readers themselves are asked: at each place a text, a mapping and
/// a list are tried, and ``ReadingRecord`` notes what the readers look up there. So a key that is
/// added to a reader is in the schema, and a removed one is not.
///
/// A schema can't express everything: for example, two keys that exclude each other may pass here,
/// though `check` refuses them. All that the schema refuses, `check` refuses too, except for quoted
/// texts that stand for a number or for `true`.
package struct ConfigurationSchema {
    /// The allowed values at a place; there may be several kinds.
    struct Setting {
        var text: ReadingRecord.Text?
        /// The keys of a mapping, in the reader's order; empty where no mapping is allowed.
        var members: [(key: String, setting: Setting)] = []
        /// The mandatory ones of the keys.
        var mandatory: [String] = []
        /// The setting of each member of a mapping with free names; at most one.
        var others: [Setting] = []
        /// The setting of each element of a list; at most one.
        var elements: [Setting] = []

        /// Whether no reader has read the place.
        var isUnknown: Bool { text == nil && members.isEmpty && others.isEmpty && elements.isEmpty }
    }

    /// A step from the root of the file to a place.
    private enum Step {
        case key(String)
        case first
    }

    /// The whole file.
    let root: Setting

    package init() { root = Self.setting(at: []) }

    // MARK: Asking the readers

    private static func setting(at place: [Step]) -> Setting {
        let keyPath = text(of: place)
        var setting = Setting()
        setting.text = read(.text("x"), at: place).texts[keyPath]
        let empty = read(.mapping([]), at: place)
        if let keys = empty.mappings[keyPath], !keys.isEmpty {
            setting.members = keys.map { ($0, self.setting(at: place + [.key($0)])) }
            setting.mandatory = mandatory(of: keys, at: place, empty.demands)
        } else {
            let member = place + [.key("name")]
            if read(.mapping([]), at: member).mappings[text(of: member)] != nil {
                setting.others = [self.setting(at: member)]
            }
        }
        let element = self.setting(of: place + [.first])
        if let element { setting.elements = [element] }
        return setting
    }

    /// An element of a list; `nil` where no list is allowed.
    private static func setting(of element: [Step]) -> Setting? {
        let keyPath = text(of: element)
        let isRead =
            read(.text("x"), at: element).texts[keyPath] != nil
            || read(.mapping([]), at: element).mappings[keyPath] != nil
        return isRead ? setting(at: element) : nil
    }

    /// The keys that are reported as missing whichever other key is there.
    private static func mandatory(
        of keys: [String],
        at place: [Step],
        _ demands: Set<String>
    ) -> [String] {
        let asked = keys.filter { demands.contains(text(of: place + [.key($0)])) }
        return asked.filter { key in
            let keyPath = text(of: place + [.key(key)])
            return keys.filter { $0 != key }.allSatisfy { other in
                read(.text("x"), at: place + [.key(other)]).demands.contains(keyPath)
            }
        }
    }

    /// The readers' look-ups when the file has only this.
    private static func read(_ content: SourceNode.Content, at place: [Step]) -> ReadingRecord {
        let start = Problem.Place(file: "", line: 1)
        var node = SourceNode(place: start, content: content)
        for step in place.reversed() {
            switch step {
            case .first: node = SourceNode(place: start, content: .list([node]))
            case .key(let key):
                let member = SourceNode.Member(key: key, place: start, value: node)
                node = SourceNode(place: start, content: .mapping([member]))
            }
        }
        let log = ProblemLog()
        let record = ReadingRecord()
        log.record = record
        let draft = ConfigurationDraft(node, folder: "", log: log)
        draft?.requireSections()
        return record
    }

    /// A place in the form of the readers.
    private static func text(of place: [Step]) -> String {
        place.reduce(into: "") { text, step in
            switch step {
            case .first: text += "[0]"
            case .key(let key): text += text.isEmpty ? key : ".\(key)"
            }
        }
    }
}
