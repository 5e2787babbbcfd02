package import Encodings
import HTTPWire
import Proxy
import Rules

/// The JSON Schema of `portcullis.yaml` and of files of rules, for editors and CI.
///
/// There is no table for it. The readers themselves are asked: at each place a text, a mapping and
/// a list are tried, and ``ReadingRecord`` notes what the readers look up there, and what the
/// declarations (``Key``) say of it. So a key that is added to a reader is in the schema, and a
/// removed one is not.
///
/// A schema can't express everything: for example, two keys that exclude each other may pass here,
/// though `check` refuses them. All that the schema refuses, `check` refuses too, except for quoted
/// texts that stand for a number or for `true`.
package struct ConfigurationSchema {
    /// The allowed values at a place; there may be several kinds.
    struct Setting {
        var text: ReadingRecord.Text?
        /// What the key means; `nil` for elements, and for keys that are not declared.
        var notes: KeyNotes?
        /// The keys of a mapping, in the reader's order; empty where no mapping is allowed.
        var members: [(key: String, setting: Setting)] = []
        var mandatory: [String] = []
        /// The setting of each member of a mapping with free names; at most one.
        var others: [Setting] = []
        /// The setting of each element of a list; at most one.
        var elements: [Setting] = []

        /// Whether no reader has read the place.
        var isUnknown: Bool { text == nil && members.isEmpty && others.isEmpty && elements.isEmpty }
    }

    /// The whole file.
    let root: Setting

    package init() {
        self.init { node, log in
            StatedConfiguration(node, folder: "", log: log)?.requireSections()
        }
    }

    /// - read: the readers of a file.
    init(_ read: @escaping (SourceNode, ProblemLog) -> Void) {
        root = SchemaTrial(reader: read).root()
    }
}

/// Asks the readers.
private struct SchemaTrial {
    typealias Setting = ConfigurationSchema.Setting

    /// A step from the root of the file to a place.
    private enum Step {
        case key(String)
        case first
    }

    let reader: (SourceNode, ProblemLog) -> Void

    /// The whole file.
    func root() -> Setting { setting(at: []) }

    private func setting(at place: [Step]) -> Setting {
        let keyPath = text(of: place)
        var setting = Setting()
        setting.text = read(.text("x"), at: place).texts[keyPath]
        let empty = read(.mapping([]), at: place)
        if let keys = empty.mappings[keyPath], !keys.isEmpty {
            setting.members = keys.map { key in
                let inner = place + [.key(key)]
                var member = self.setting(at: inner)
                member.notes = empty.notes[text(of: inner)]
                return (key, member)
            }
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
    private func setting(of element: [Step]) -> Setting? {
        let keyPath = text(of: element)
        let isRead =
            read(.text("x"), at: element).texts[keyPath] != nil
            || read(.mapping([]), at: element).mappings[keyPath] != nil
        return isRead ? setting(at: element) : nil
    }

    /// The keys that are reported as missing whichever other key is there.
    private func mandatory(
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
    private func read(_ content: SourceNode.Content, at place: [Step]) -> ReadingRecord {
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
        reader(node, log)
        return record
    }

    /// A place in the form of the readers.
    private func text(of place: [Step]) -> String {
        place.reduce(into: "") { text, step in
            switch step {
            case .first: text += "[0]"
            case .key(let key): text += text.isEmpty ? key : ".\(key)"
            }
        }
    }
}

// The schema as rows, for the tables of the texts.
extension ConfigurationSchema {
    /// A key of the configuration.
    package struct Row: Sendable {
        /// A dot leads into a mapping, `[]` into each element of a list; `*` is a free name.
        package let key: String
        /// The allowed values, in the words of problems.
        package let allowed: String
        /// Whether a configuration without it is refused.
        package let isMandatory: Bool
        /// The default, as a file writes it; `nil` where absence has no written form.
        package let standard: String?
        /// What it means, and what a change needs.
        package let meaning: String
    }

    /// All keys, in the order of the readers.
    package var rows: [Row] { Self.rows(root, "") }

    /// The keys below `limits` and `timeouts`.
    package var limits: [Row] {
        rows.filter { row in
            row.standard != nil && ["limits.", "timeouts."].contains(where: row.key.hasPrefix)
        }
    }

    private static func rows(_ setting: Setting, _ path: String) -> [Row] {
        var rows: [Row] = []
        for (key, member) in setting.members {
            let place = path.isEmpty ? key : "\(path).\(key)"
            let isMandatory = setting.mandatory.contains(key)
            let row = Row(
                key: place,
                allowed: allowed(member),
                isMandatory: isMandatory,
                standard: member.notes?.standard,
                meaning: member.notes?.text ?? ""
            )
            rows += [row] + self.rows(member, place)
        }
        for other in setting.others { rows += self.rows(other, path + ".*") }
        for element in setting.elements { rows += self.rows(element, path + "[]") }
        return rows
    }

    private static func allowed(_ setting: Setting) -> String {
        var forms = setting.text.map { [$0.allowed] } ?? []
        if !setting.members.isEmpty { forms.append("a mapping") }
        if !setting.others.isEmpty { forms.append("a mapping of names") }
        if let element = setting.elements.first {
            // The text of a list often already describes its elements.
            let use = element.text?.allowed
            forms.append(use.map { forms.contains($0) ? "a list" : "a list: \($0)" } ?? "a list")
        }
        return forms.isEmpty ? "anything" : forms.joined(separator: "; or ")
    }
}

// The schema as JSON Schema, draft 7, which all editors and CI tools know.
extension ConfigurationSchema {
    /// A list is a file of rules or of apps, a mapping of mappings with servers a file of origins,
    /// and anything else the configuration.
    package var json: JSONValue {
        func member(_ key: String) -> Setting? { root.members.first { $0.key == key }?.setting }
        let (rule, app) = (member("rules")?.elements.first, member("apps")?.elements.first)
        let origin = member("origins")?.others.first
        return .object([
            .init("$schema", .string("http://json-schema.org/draft-07/schema#")),
            .init(
                "title",
                .string("Portcullis: portcullis.yaml, or a file of rules, apps or origins")
            ),
            .init("if", .object([.init("type", .string("array"))])),
            .init(
                "then",
                .object([
                    .init("type", .string("array")),
                    .init("items", Self.choice(Self.isApp, Self.app, else: Self.rule)),
                ])
            ),
            .init("else", Self.choice(Self.isOrigins, Self.origins, else: Self.configuration)),
            .init(
                "definitions",
                .object([
                    .init("configuration", Self.json(root, isRoot: true)),
                    .init("rule", rule.map { Self.json($0) } ?? .object([])),
                    .init("app", app.map { Self.json($0) } ?? .object([])),
                    .init("origins", Self.names(origin.map { Self.json($0) } ?? .object([]))),
                ])
            ),
        ])
    }

    private static let configuration = reference("configuration")
    private static let rule = reference("rule")
    private static let app = reference("app")
    private static let origins = reference("origins")

    private static func reference(_ name: String) -> JSONValue {
        .object([.init("$ref", .string("#/definitions/\(name)"))])
    }

    private static func choice(
        _ condition: JSONValue,
        _ one: JSONValue,
        else other: JSONValue
    ) -> JSONValue {
        .object([.init("if", condition), .init("then", one), .init("else", other)])
    }

    private static func having(_ key: String) -> JSONValue {
        .object([.init("required", .array([.string(key)]))])
    }

    /// No rule has one of these keys.
    private static let isApp = JSONValue.object([
        .init("anyOf", .array([having("environments"), having("android")]))
    ])

    /// No key of a configuration has a mapping with servers.
    private static let isOrigins = names(
        .object([.init("type", .string("object")), .init("required", .array([.string("servers")]))])
    )

    /// A mapping with free names.
    private static func names(_ element: JSONValue) -> JSONValue {
        .object([
            .init("type", .string("object")), .init("minProperties", .number(1)),
            .init("additionalProperties", element),
        ])
    }

    /// A key's values with its meaning and its default, which editors show.
    private static func json(_ setting: Setting, isRoot: Bool = false) -> JSONValue {
        let values = values(setting, isRoot: isRoot)
        guard let notes = setting.notes, case .object(var members) = values else { return values }
        var text = notes.text
        if case .string(let use)? = values["description"] {
            members.removeAll { $0.name == "description" }
            text += " Allowed: \(use)."
        }
        members.append(.init("description", .string(text)))
        // A value as a file writes it: for none there is no such value.
        if let standard = notes.standard, let text = setting.text, setting.elements.isEmpty,
            setting.members.isEmpty, standard != "none" || text.words.contains(standard)
        {
            members.append(.init("default", json(standard, text.form)))
        }
        return .object(members)
    }

    private static func json(_ standard: String, _ form: ReadingRecord.Form?) -> JSONValue {
        switch form {
        case .flag: .bool(standard == "true")
        case .number: Int64(standard).map { .number($0) } ?? .string(standard)
        case .text, .size, .duration, nil: .string(standard)
        }
    }

    private static func values(_ setting: Setting, isRoot: Bool) -> JSONValue {
        var forms: [JSONValue] = []
        if let text = setting.text { forms.append(json(text)) }
        if !setting.members.isEmpty { forms.append(mapping(setting, isRoot: isRoot)) }
        if let other = setting.others.first {
            forms.append(names(json(other)))
        }
        if let element = setting.elements.first {
            forms.append(
                .object([
                    .init("type", .string("array")), .init("minItems", .number(1)),
                    .init("items", json(element)),
                ])
            )
        }
        // A place that no reader has read may have any value.
        guard let first = forms.first else { return .object([]) }
        return forms.count == 1 ? first : .object([.init("anyOf", .array(forms))])
    }

    private static func mapping(_ setting: Setting, isRoot: Bool) -> JSONValue {
        let members = setting.members.map { key, member in
            guard isRoot, let text = member.text else {
                return JSONValue.Member(key, json(member))
            }
            let whole: JSONValue
            switch FileFolder.Content(rawValue: key) {
            // An empty list of rules is allowed.
            case .rules:
                whole = .object([.init("type", .string("array")), .init("items", rule)])
            case .apps:
                whole = .object([
                    .init("type", .string("array")), .init("minItems", .number(1)),
                    .init("items", app),
                ])
            case .origins: whole = origins
            case nil: return JSONValue.Member(key, json(member))
            }
            let meaning = JSONValue.Member("description", .string(member.notes?.text ?? ""))
            let forms = JSONValue.Member("anyOf", .array([json(text), whole]))
            return .init(key, .object([forms, meaning]))
        }
        var object: [JSONValue.Member] = [
            .init("type", .string("object")), .init("properties", .object(members)),
            .init("additionalProperties", .bool(false)),
        ]
        if !setting.mandatory.isEmpty {
            object.append(.init("required", .array(setting.mandatory.map { .string($0) })))
        }
        return .object(object)
    }

    private static func json(_ text: ReadingRecord.Text) -> JSONValue {
        let use = JSONValue.Member("description", .string(text.allowed))
        func typed(_ type: String, _ more: JSONValue.Member...) -> JSONValue {
            .object([.init("type", .string(type))] + more + [use])
        }
        switch text.form {
        case .flag: return typed("boolean")
        case .number(let range):
            return typed(
                "integer",
                .init("minimum", .number(Int64(range.lowerBound))),
                .init("maximum", .number(Int64(range.upperBound)))
            )
        case .size:
            let units = ByteCount.units.map(\.name).joined(separator: "|")
            return typed("string", .init("pattern", .string("^[0-9]+(\(units))$")))
        case .duration: return typed("string", .init("pattern", .string("^[0-9]+(ms|s|m|h|d)$")))
        case .text: return words(text, use)
        }
    }

    /// Words, or any text; YAML readers may take a text for a number.
    private static func words(_ text: ReadingRecord.Text, _ use: JSONValue.Member) -> JSONValue {
        let any = JSONValue.Member("type", .array([.string("string"), .string("number")]))
        guard !text.words.isEmpty else { return .object([any, use]) }
        var forms: [JSONValue] = [.object([.init("enum", .array(text.words.map { .string($0) }))])]
        let hasNumber = text.words.contains { Double($0) != nil }
        switch (text.isClosed, hasNumber) {
        case (false, _): forms.append(.object([any]))
        case (true, true): forms.append(.object([.init("type", .string("number"))]))
        case (true, false):
            return .object([.init("enum", .array(text.words.map { .string($0) })), use])
        }
        return .object([.init("anyOf", .array(forms)), use])
    }
}
