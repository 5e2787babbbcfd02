package import Encodings
import Rules

// The schema as JSON Schema, draft 7, which all editors and CI tools know.
extension ConfigurationSchema {
    /// A list is a file of rules, and anything else the configuration.
    package var json: JSONValue {
        let rules = root.members.first { $0.key == "rules" }?.setting.elements.first
        return .object([
            .init("$schema", .string("http://json-schema.org/draft-07/schema#")),
            .init("title", .string("Portcullis: portcullis.yaml, or a file of rules")),
            .init("if", .object([.init("type", .string("array"))])),
            .init(
                "then",
                .object([
                    .init("type", .string("array")),
                    .init("items", .object([.init("$ref", .string(Self.rule))])),
                ])
            ),
            .init("else", .object([.init("$ref", .string("#/definitions/configuration"))])),
            .init(
                "definitions",
                .object([
                    .init("configuration", Self.json(root, isRoot: true)),
                    .init("rule", rules.map { Self.json($0) } ?? .object([])),
                ])
            ),
        ])
    }

    private static let rule = "#/definitions/rule"

    private static func json(_ setting: Setting, isRoot: Bool = false) -> JSONValue {
        var forms: [JSONValue] = []
        if let text = setting.text { forms.append(json(text)) }
        if !setting.members.isEmpty { forms.append(mapping(setting, isRoot: isRoot)) }
        if let other = setting.others.first {
            forms.append(
                .object([
                    .init("type", .string("object")), .init("minProperties", .number(1)),
                    .init("additionalProperties", json(other)),
                ])
            )
        }
        if let element = setting.elements.first { forms.append(list(json(element))) }
        // A place that no reader has read may have any value.
        guard let first = forms.first else { return .object([]) }
        return forms.count == 1 ? first : .object([.init("anyOf", .array(forms))])
    }

    private static func list(_ element: JSONValue) -> JSONValue {
        .object([
            .init("type", .string("array")), .init("minItems", .number(1)),
            .init("items", element),
        ])
    }

    private static func mapping(_ setting: Setting, isRoot: Bool) -> JSONValue {
        let members = setting.members.map { key, member in
            guard isRoot, key == "rules", let text = member.text else {
                return JSONValue.Member(key, json(member))
            }
            // An empty list of rules is allowed.
            let list = JSONValue.object([
                .init("type", .string("array")),
                .init("items", .object([.init("$ref", .string(Self.rule))])),
            ])
            return .init(key, .object([.init("anyOf", .array([json(text), list]))]))
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
        let use = JSONValue.Member("description", .string(text.use))
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
