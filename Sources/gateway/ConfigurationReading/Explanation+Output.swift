import Rules

extension Explanation {
    /// The explanation for people.
    package var text: String {
        var lines = [request]
        lines += passed.map { "  not \($0.id) (\($0.place)): \($0.because)" }
        if isEndpoint { lines.append("  answered by the gateway itself") }
        if let rule, let place {
            let target = origin.map { " → \($0)" } ?? ""
            lines.append("  rule \(rule.id) (\(place)): \(rule.modeText)\(target)")
        }
        for rival in rivals {
            let path = rival.path.filter { $0 >= " " && $0 != "\u{7F}" }
            lines.append("  but \(rival.id) (\(rival.place)) for servers that read it as \(path):")
            lines.append("    they \(rival.reading.text); see paths of the origin")
        }
        if let refusal { lines.append("  refused with \(refusal.status): \(refusal.reason)") }
        if let rule, refusal == nil {
            lines += rule.demandLines.map { "    \($0)" }
            if !clientData.isEmpty {
                lines.append("  client data, each line with a line feed behind it:")
                lines += clientData.map { "    | \($0)" }
            }
            if rule.mode == .enforce { lines.append("  \(placementText)") }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private var placementText: String {
        guard let placement else {
            return "rollout: name a key id field or a client address to see its bucket"
        }
        let below = placement.isEnforced ? "below" : "not below"
        let fate = placement.isEnforced ? "enforced" : "observed only"
        let text =
            "rollout: \(placement.subject) is in bucket \(placement.bucket) of 1000000, \(below) "
            + "\(placement.share.millionths) (\(placement.share.text)): \(fate)"
        guard placement.subject == "key" else { return text }
        return text + "\n  rollout: where the key's signature does not hold, the address decides"
    }

    /// The explanation as one JSON object.
    package var json: String {
        var members: [(String, JSONText)] = [("request", .string(request))]
        members.append(
            (
                "passed",
                .array(
                    passed.map { rule in
                        .object([
                            ("id", .string(rule.id)), ("place", .string(rule.place)),
                            ("because", .string(rule.because)),
                        ])
                    }
                )
            )
        )
        if isEndpoint { members.append(("endpoint", .bool(true))) }
        if let rule, let place {
            members += [("rule", .string(rule.id)), ("place", .string(place))]
            if let origin { members.append(("origin", .string(origin))) }
            members += [
                ("mode", .string(rule.mode.rawValue)),
                ("asks", .array(rule.demandLines.map(JSONText.string))),
            ]
        }
        if let rival = rivals.first {
            let rivals = rivals.map { rival in
                JSONText.object([
                    ("rule", .string(rival.id)), ("place", .string(rival.place)),
                    ("path", .string(rival.path)),
                    ("reading", .array(rival.reading.names.map(JSONText.string))),
                ])
            }
            members += [("rival", .string(rival.id)), ("readings", .array(rivals))]
        }
        if let refusal {
            let inner: [(String, JSONText)] = [
                ("status", .number(refusal.status)), ("reason", .string(refusal.reason)),
            ]
            members.append(("refused", .object(inner)))
        }
        if !clientData.isEmpty {
            members.append(("client_data", .array(clientData.map(JSONText.string))))
        }
        if let placement {
            let inner: [(String, JSONText)] = [
                ("subject", .string(placement.subject)), ("bucket", .number(placement.bucket)),
                ("threshold", .number(placement.share.millionths)),
                ("enforced", .bool(placement.isEnforced)),
            ]
            members.append(("rollout", .object(inner)))
        }
        return JSONText.object(members).text + "\n"
    }
}

/// A JSON text to be written (RFC 8259), members in the given order.
indirect enum JSONText: Sendable {
    case string(String)
    case number(Int)
    case bool(Bool)
    case array([JSONText])
    case object([(String, JSONText)])

    var text: String {
        switch self {
        case .string(let text): Self.quoted(text)
        case .number(let number): String(number)
        case .bool(let bool): bool ? "true" : "false"
        case .array(let elements): "[\(elements.map(\.text).joined(separator: ", "))]"
        case .object(let members):
            "{\(members.map { "\(Self.quoted($0)): \($1.text)" }.joined(separator: ", "))}"
        }
    }

    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case "\u{0}"..<"\u{20}", "\u{7F}":
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
