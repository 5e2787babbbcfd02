import Encodings
import Rules

extension Explanation {
    /// The explanation for people.
    package var text: String {
        var lines = [request]
        lines += passed.map { "  not \($0.id) (\($0.place)): \($0.because)" }
        switch outcome {
        case .service(let name): lines.append("  answered by the gateway itself: \(name)")
        case .lastHop:
            lines.append("  answered by the gateway itself with 200, since Max-Forwards is 0")
        case .refused, .rule: break
        }
        if let rule, let place {
            let target = origin.map { " → \($0)" } ?? ""
            lines.append("  rule \(rule.id) (\(place)): \(rule.modeText)\(target)")
            lines += orderLines
        }
        for rival in rivals {
            let path = rival.path.filter { $0 >= " " && $0 != "\u{7F}" }
            lines.append("  but \(rival.id) (\(rival.place)) for servers that read it as \(path):")
            lines.append("    they \(rival.interpretation.text); see paths of the origin")
        }
        if let refusal { lines.append("  refused with \(refusal.status): \(refusal.reason)") }
        if let rule, refusal == nil {
            lines += rule.demandLines.map { "    \($0)" }
            if !clientData.isEmpty {
                lines.append("  client data, each line ended by a line feed:")
                lines += clientData.map { "    | \($0)" }
            }
        }
        lines += blindListeners.map { "  refused at \($0) with 413: content-unseen" }
        if let key { lines += key.lines }
        if let rule, rule.mode == .enforce, refusal == nil { lines.append("  \(placementText)") }
        return lines.joined(separator: "\n") + "\n"
    }

    /// The order that replaces the file, and what the file says.
    private var orderLines: [String] {
        guard let order, let text = order.standing.orderText else { return [] }
        return ["    \(text)", "    its file says \(order.file)"]
    }

    private var placementText: String {
        guard let placement else {
            return "rollout: give --key, the key id field or --client to see the bucket"
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
        var json = JSONWriter(.spaced)
        json.object { json in
            json.member("request", request)
            json.objects("passed", passed) { json, rule in
                json.member("id", rule.id)
                json.member("place", rule.place)
                json.member("because", rule.because)
            }
            switch outcome {
            case .service(let name):
                json.member("endpoint", true)
                json.member("service", name)
            case .lastHop: json.member("last_hop", true)
            case .refused, .rule: break
            }
            writeRule(into: &json)
            writeRivals(into: &json)
            if let refusal {
                json.object("refused") { json in
                    json.member("status", refusal.status)
                    json.member("reason", refusal.reason)
                }
            }
            if !clientData.isEmpty { json.texts("client_data", clientData) }
            if !blindListeners.isEmpty { json.texts("content_unseen_at", blindListeners) }
            key?.write(into: &json)
            writeRollout(into: &json)
        }
        json.endLine()
        return json.text
    }

    private func writeRule(into json: inout JSONWriter) {
        guard let rule, let place else { return }
        json.member("rule", rule.id)
        json.member("place", place)
        if let origin { json.member("origin", origin) }
        json.member("mode", rule.mode.rawValue)
        json.member("source", (order?.standing.source ?? .file).rawValue)
        if let order {
            json.member("order", order.standing.note?.text)
            json.member("ramp", order.standing.rampText)
            json.member("file", order.file)
        }
        json.texts("asks", rule.demandLines)
    }

    private func writeRivals(into json: inout JSONWriter) {
        guard let first = rivals.first else { return }
        json.member("rival", first.id)
        json.objects("readings", rivals) { json, rival in
            json.member("rule", rival.id)
            json.member("place", rival.place)
            json.member("path", rival.path)
            json.texts("reading", rival.interpretation.names)
        }
    }

    private func writeRollout(into json: inout JSONWriter) {
        guard let placement else { return }
        json.object("rollout") { json in
            json.member("subject", placement.subject)
            json.member("bucket", placement.bucket)
            json.member("threshold", placement.share.millionths)
            json.member("enforced", placement.isEnforced)
        }
    }
}
