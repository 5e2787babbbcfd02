import HTTPWire
import Proxy

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
    }

    /// A limit or a timeout with its default.
    package struct Limit: Sendable {
        package let key: String
        package let standard: String
        package let allowed: String
    }

    /// All keys, in the order of the readers.
    package var rows: [Row] { Self.rows(root, "") }

    /// The keys below `limits` and `timeouts`.
    package var limits: [Limit] {
        func texts<Section>(_ rows: [SettingRow<Section>], of section: Section, _ place: String)
            -> [(String, String)]
        {
            rows.map { ("\(place).\($0.key)", $0.text(in: section)) }
        }
        let standards = Dictionary(
            uniqueKeysWithValues: texts(ProxyLimits.rows, of: ProxyLimits(), "limits")
                + texts(HTTP2Limits.rows, of: HTTP2Limits(), "limits.http2")
                + texts(Timeouts.rows, of: Timeouts(), "timeouts")
        )
        return rows.compactMap { row in
            standards[row.key].map { Limit(key: row.key, standard: $0, allowed: row.allowed) }
        }
    }

    private static func rows(_ setting: Setting, _ path: String) -> [Row] {
        var rows: [Row] = []
        for (key, member) in setting.members {
            let place = path.isEmpty ? key : "\(path).\(key)"
            let isMandatory = setting.mandatory.contains(key)
            let row = Row(key: place, allowed: allowed(member), isMandatory: isMandatory)
            rows += [row] + self.rows(member, place)
        }
        for other in setting.others { rows += self.rows(other, path + ".*") }
        for element in setting.elements { rows += self.rows(element, path + "[]") }
        return rows
    }

    private static func allowed(_ setting: Setting) -> String {
        var forms = setting.text.map { [$0.use] } ?? []
        if !setting.members.isEmpty { forms.append("a mapping") }
        if !setting.others.isEmpty { forms.append("a mapping of names") }
        if let element = setting.elements.first {
            // The text of a list often already describes its elements.
            let use = element.text?.use
            forms.append(use.map { forms.contains($0) ? "a list" : "a list: \($0)" } ?? "a list")
        }
        return forms.isEmpty ? "anything" : forms.joined(separator: "; or ")
    }
}
