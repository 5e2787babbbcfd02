import ConfigurationReading
import Foundation

/// Reads the file of a case. What is wrong becomes a problem with its line.
struct CaseReader {
    /// The most steps of a case.
    private static let stepsMax = 64

    let log: ProblemLog

    /// A case out of the text of its file; `nil` with problems in the log.
    func proving(_ bytes: [UInt8], file: String, group: String, name: String) -> ProvingCase? {
        let use = "a case: name, why, section, steps"
        guard let root = SourceNode.read(bytes, file: file, use: use, log: log),
            let reader = MappingReader(root, "", keys: Self.keys, log: log)
        else { return nil }
        for key in ["name", "why", "section", "steps"] {
            reader.require(key, use: "the key \(key)")
        }
        var steps = self.steps(reader)
        if case .start = steps.first?.deed {
        } else {
            let start = CaseStep(deed: .start(ClientStart()), process: 1, expected: [], line: 1)
            steps.insert(start, at: 0)
        }
        let proving = ProvingCase(
            group: group,
            file: name,
            name: text(reader, "name") ?? "",
            why: text(reader, "why") ?? "",
            section: text(reader, "section") ?? "",
            needs: words(reader, "needs"),
            platforms: reader.has("platforms")
                ? words(reader, "platforms") : ProvingPlatform.allCases,
            isAlways: reader.flag("always")?.value ?? false,
            gateway: gateway(reader),
            middle: faults(reader, "middle", of: .middle),
            origin: faults(reader, "origin", of: .origin),
            device: faults(reader, "device", of: .device),
            steps: steps,
            expected: expectations(reader, "expect")
        )
        return log.hasErrors ? nil : proving
    }

    private static let keys = [
        "name", "why", "section", "needs", "platforms", "always", "gateway", "rules", "middle",
        "origin", "device", "steps", "expect",
    ]

    // MARK: Texts and words

    func text(_ reader: MappingReader, _ key: String) -> String? {
        guard let node = reader.node(key) else { return nil }
        guard case .text(let text) = node.content, !text.isEmpty else {
            reader.error(key, found: node.found, use: "a text")
            return nil
        }
        return text.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    func number(_ reader: MappingReader, _ key: String) -> Double? {
        guard let text = text(reader, key) else { return nil }
        guard let number = Double(text), number >= 0, number <= 1e9 else {
            reader.error(key, found: "\"\(text)\"", use: "a number of seconds")
            return nil
        }
        return number
    }

    func words<Word>(_ reader: MappingReader, _ key: String) -> [Word]
    where Word: RawRepresentable<String> & CaseIterable {
        guard reader.has(key) else { return [] }
        let all = Word.allCases.map(\.rawValue)
        return (reader.list(key, of: "words") ?? []).compactMap { node, path in
            guard case .text(let text) = node.content, let word = Word(rawValue: text) else {
                let use = all.joined(separator: " | ")
                log.error(node.place, path, found: node.found, use: use)
                return nil
            }
            return word
        }
    }

    /// The texts of a list, or a text alone.
    func texts(_ reader: MappingReader, _ key: String) -> [String] {
        guard let node = reader.node(key) else { return [] }
        if case .text(let text) = node.content { return [text] }
        return (reader.list(key, of: "texts") ?? []).compactMap { node, path in
            if case .text(let text) = node.content { return text }
            log.error(node.place, path, found: node.found, use: "a text")
            return nil
        }
    }

    /// The texts of a mapping by their names.
    func fields(_ reader: MappingReader, _ key: String) -> [(name: String, value: String)] {
        guard let node = reader.node(key) else { return [] }
        guard case .mapping(let members) = node.content else {
            reader.error(key, found: node.found, use: "a mapping of names and texts")
            return []
        }
        return members.compactMap { member in
            switch member.value.content {
            case .text(let text): return (member.key, text)
            case .nothing: return (member.key, "")
            default:
                log.error(
                    member.place,
                    reader.path(key),
                    found: member.value.found,
                    use: "a text"
                )
                return nil
            }
        }
    }

    // MARK: The gateway

    private func gateway(_ reader: MappingReader) -> PlayedConfiguration {
        var settings = PlayedConfiguration()
        if reader.has("rules") { settings.rules = rules(reader) }
        guard let node = reader.node("gateway") else { return settings }
        guard case .mapping(let members) = node.content else {
            reader.error("gateway", found: node.found, use: "settings of the gateway")
            return settings
        }
        settings.more = members.map { ($0.key, Self.flow($0.value)) }
        return settings
    }

    func rules(_ reader: MappingReader) -> [GatewayRule] {
        (reader.list("rules", of: "rules of the gateway") ?? []).compactMap { node, path in
            guard case .mapping(let members) = node.content else {
                log.error(node.place, path, found: node.found, use: "a rule of the gateway")
                return nil
            }
            return GatewayRule(members: members.map { ($0.key, Self.flow($0.value)) })
        }
    }

    /// A node as YAML in flow style. Texts stand in quotes: the gateway reads them as it reads
    /// others.
    private static func flow(_ node: SourceNode) -> String {
        switch node.content {
        case .nothing: return "null"
        case .text(let text):
            let escaped = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
                .replacing("\n", with: "\\n")
            return "\"\(escaped)\""
        case .list(let nodes): return "[\(nodes.map(flow).joined(separator: ", "))]"
        case .mapping(let members):
            let inner = members.map { "\($0.key): \(flow($0.value))" }
            return "{ \(inner.joined(separator: ", ")) }"
        }
    }

    private func steps(_ reader: MappingReader) -> [CaseStep] {
        let nodes = reader.list("steps", of: "steps") ?? []
        guard nodes.count <= Self.stepsMax else {
            reader.error(
                "steps",
                found: "\(nodes.count) steps",
                use: "at most \(Self.stepsMax)"
            )
            return []
        }
        return nodes.compactMap { step($0.node, $0.keyPath) }
    }
}
