/// The JSON Schema of `portcullis.yaml` and of files of rules, for editors and CI.
///
/// No table is kept for it. The readers themselves are asked: at each place a text, a mapping and a
/// list are tried, and ``ReadingRecord`` notes what the readers look for there. So a key that is
/// added to a reader is in the schema, and one that is removed is not.
///
/// A schema can't say everything: what `check` refuses for a reason of its own, such as two keys
/// that exclude each other, may pass here. What it refuses, `check` refuses too, but for texts
/// between quotes that stand for a number or for `true`.
package struct ConfigurationSchema {
    /// What may stand at a place; several of these may.
    struct Setting {
        var text: ReadingRecord.Text?
        /// The keys of a mapping, in the reader's order; empty where no mapping may stand.
        var members: [(key: String, setting: Setting)] = []
        /// Those of the keys that have to stand there.
        var mandatory: [String] = []
        /// What each member of a mapping with free names is; at most one.
        var others: [Setting] = []
        /// What each element of a list is; at most one.
        var elements: [Setting] = []

        /// Whether no reader has looked at the place.
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

    /// An element of a list; `nil` where no list may stand.
    private static func setting(of element: [Step]) -> Setting? {
        let keyPath = text(of: element)
        let isRead =
            read(.text("x"), at: element).texts[keyPath] != nil
            || read(.mapping([]), at: element).mappings[keyPath] != nil
        return isRead ? setting(at: element) : nil
    }

    /// The keys that are missed whichever other key stands there.
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

    /// What the readers ask for when this is all that the file has.
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

    /// As readers write a place.
    private static func text(of place: [Step]) -> String {
        place.reduce(into: "") { text, step in
            switch step {
            case .first: text += "[0]"
            case .key(let key): text += text.isEmpty ? key : ".\(key)"
            }
        }
    }
}
