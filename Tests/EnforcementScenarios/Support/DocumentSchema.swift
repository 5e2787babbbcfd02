import Foundation

/// A JSON value as a schema sees it.
indirect enum SchemaValue: Decodable, Hashable {
    case null
    case bool(Bool)
    case number(Double)
    case text(String)
    case list([SchemaValue])
    case object([String: SchemaValue])

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let bool = try? value.decode(Bool.self) {
            self = .bool(bool)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if let list = try? value.decode([SchemaValue].self) {
            self = .list(list)
        } else {
            self = .object(try value.decode([String: SchemaValue].self))
        }
    }

    static func read(_ text: String) throws -> SchemaValue {
        try JSONDecoder().decode(SchemaValue.self, from: Data(text.utf8))
    }

    subscript(_ name: String) -> SchemaValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }

    /// The elements; empty for what is no list.
    var list: [SchemaValue] { if case .list(let list) = self { list } else { [] } }

    var texts: [String] {
        list.compactMap { if case .text(let text) = $0 { text } else { nil } }
    }

    /// The names of types by which a schema knows it.
    fileprivate var types: Set<String> {
        switch self {
        case .null: ["null"]
        case .bool: ["boolean"]
        case .number(let number): number.rounded() == number ? ["number", "integer"] : ["number"]
        case .text: ["string"]
        case .list: ["array"]
        case .object: ["object"]
        }
    }
}

/// A JSON Schema of `deploy/schemas`, with the words of draft 7 that those use; any other word is a
/// fault. It is stricter than the schema in one thing: a member that is not described is a fault,
/// too, so that the schemas have all members.
struct DocumentSchema {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "deploy/schemas")

    let root: SchemaValue

    init(_ name: String) throws {
        let file = Self.folder.appending(path: "\(name).schema.json")
        root = try SchemaValue.read(String(contentsOf: file, encoding: .utf8))
    }

    /// What is wrong with a document, each with its place.
    func faults(in document: String) throws -> [String] {
        faults(try SchemaValue.read(document), root, at: "")
    }

    func faults(in value: SchemaValue) -> [String] { faults(value, root, at: "") }

    private func faults(
        _ value: SchemaValue,
        _ schema: SchemaValue,
        at place: String
    ) -> [String] {
        guard case .object(let words) = schema else { return ["\(place): no schema"] }
        return words.flatMap { word, meaning -> [String] in
            switch (word, meaning) {
            case ("$schema", _), ("title", _), ("description", _), ("definitions", _): return []
            case ("$ref", .text(let reference)):
                let name = reference.split(separator: "/").last.map(String.init) ?? ""
                guard let target = root["definitions"]?[name] else {
                    return ["\(place): no \(reference)"]
                }
                return faults(value, target, at: place)
            case ("type", .text(let type)): return fault(value, types: [type], at: place)
            case ("type", .list): return fault(value, types: meaning.texts, at: place)
            case ("enum", .list(let allowed)):
                return allowed.contains(value) ? [] : ["\(place): \(value) is no word of it"]
            case ("minimum", .number(let least)):
                if case .number(let number) = value, number < least {
                    return ["\(place): below \(least)"]
                }
                return []
            case ("required", .list):
                return meaning.texts.filter { value[$0] == nil }.map { "\(place).\($0): absent" }
            case ("items", _):
                guard case .list(let elements) = value else { return [] }
                return elements.enumerated().flatMap { index, element in
                    faults(element, meaning, at: "\(place)[\(index)]")
                }
            case ("properties", _): return members(of: value, words, at: place)
            case ("additionalProperties", .object):
                return words["properties"] == nil ? members(of: value, words, at: place) : []
            default: return ["\(place): the word \(word)"]
            }
        }
    }

    private func fault(_ value: SchemaValue, types: [String], at place: String) -> [String] {
        value.types.isDisjoint(with: types) ? ["\(place): \(value) is not \(types)"] : []
    }

    private func members(
        of value: SchemaValue,
        _ words: [String: SchemaValue],
        at place: String
    ) -> [String] {
        guard case .object(let members) = value else { return [] }
        return members.flatMap { name, member -> [String] in
            let schema = words["properties"]?[name] ?? words["additionalProperties"]
            guard let schema else { return ["\(place).\(name): not described"] }
            return faults(member, schema, at: "\(place).\(name)")
        }
    }
}
