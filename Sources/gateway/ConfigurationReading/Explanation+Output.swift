import Cryptography
import DeviceKey
import Encodings
package import KeyStore
import Rules
import Verification

extension Explanation {
    /// The explanation for people.
    package var text: String {
        var lines = [request]
        lines += passed.map { "  not \($0.id) (\($0.place)): \($0.because)" }
        switch outcome {
        case .service(let name): lines.append("  answered by the gateway itself: \(name)")
        case .lastHop:
            lines.append("  answered by the gateway itself with 200, since Max-Forwards is 0")
        case .refused, .rule, .disputed: break
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
        lines += observedLines
        if let rule, refusal == nil, dispute == nil {
            lines += rule.demandLines.map { "    \($0)" }
            if !clientData.isEmpty {
                lines.append("  client data, each line ended by a line feed:")
                lines += clientData.map { "    | \($0)" }
            }
        }
        lines += blindListeners.map { "  refused at \($0) with 413: content-unseen" }
        if let key { lines += key.lines }
        if let rule, rule.mode == .enforce, refusal == nil, dispute == nil {
            lines.append("  \(placementText)")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// The order that replaces the file, and what the file says.
    private var orderLines: [String] {
        guard let order, let text = order.standing.orderText else { return [] }
        return ["    \(text)", "    its file says \(order.file)"]
    }

    /// The fate of a request that a rule would refuse once it enforces for the client.
    private var observedLines: [String] {
        guard let dispute, !dispute.isRefused else { return [] }
        return [
            "  forwarded unjudged: \(dispute.rule.id) (\(dispute.place)) does not enforce for it,",
            "    counts it as \(dispute.reason), and would refuse it with \(dispute.status)",
        ]
    }

    private var placementText: String {
        guard let placement else {
            let key = rule?.readsKeys == false ? "" : "--key, the key id field or "
            return "rollout: give \(key)--client to see the bucket"
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
            json.objects("passed", of: passed) { json, rule in
                json.member("id", rule.id)
                json.member("place", rule.place)
                json.member("because", rule.because)
            }
            switch outcome {
            case .service(let name):
                json.member("endpoint", true)
                json.member("service", name)
            case .lastHop: json.member("last_hop", true)
            case .refused, .rule, .disputed: break
            }
            writeRule(into: &json)
            writeRivals(into: &json)
            if let refusal {
                json.object("refused") { json in
                    json.member("status", refusal.status)
                    json.member("reason", refusal.reason)
                }
            }
            if let dispute, !dispute.isRefused {
                json.object("would_be_refused") { json in
                    json.member("rule", dispute.rule.id)
                    json.member("status", dispute.status)
                    json.member("reason", dispute.reason)
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
        json.objects("readings", of: rivals) { json, rival in
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

/// The store's answer about a key.
package enum KeyFinding: Sendable {
    case stored(KeyRecord)
    case notStored
    /// The store was not asked, for this reason.
    case notAsked(String)
}

/// The key of an explained request: the known facts, and the rule's verdict about them.
struct ExplainedKey: Sendable {
    private let keyID: KeyID
    private let finding: KeyFinding
    /// The verdict about every request of this key, whatever it signs; `nil` when the store does
    /// not decide it alone.
    private let refusal: Refusal?

    init(_ keyID: KeyID, _ finding: KeyFinding, for rule: Rule?, apps: [AppPolicy]) {
        self.keyID = keyID
        self.finding = finding
        // A token may be taken in the place of a signature.
        guard let rule, rule.readsKeys, rule.accept.tokens.isEmpty else {
            refusal = nil
            return
        }
        switch finding {
        case .notAsked: refusal = nil
        case .notStored: refusal = .keyUnknown
        case .stored(let record):
            let app = apps.first { $0.id == record.appID }
            // In the order in which a request is judged.
            refusal =
                if record.status.standing == .deleted {
                    .keyUnknown
                } else if case .revoked = record.status {
                    .keyRevoked
                } else if let app, rule.apps.admits(app) {
                    nil
                } else {
                    .appMismatch
                }
        }
    }

    /// The lines for people.
    var lines: [String] {
        var lines = ["  key \(keyID.logName) (\(keyID.base64)): "]
        switch finding {
        case .stored(let record):
            lines[0] += record.statusText
            if !record.isErased { lines.append("    " + record.historyText) }
        case .notStored: lines[0] += "not stored"
        case .notAsked(let reason): lines[0] += "not looked up, since \(reason)"
        }
        if let refusal { lines.append("    the rule's verdict: refuse \(refusal.rawValue)") }
        return lines
    }

    /// Writes the member `key`.
    func write(into json: inout JSONWriter) {
        json.object("key") { json in
            json.member("key_id", keyID.base64)
            json.member("name", keyID.logName)
            switch finding {
            case .stored(let record): record.write(into: &json)
            case .notStored: json.member("status", "not-stored")
            case .notAsked(let reason):
                json.member("status", "not-looked-up")
                json.member("because", reason)
            }
            if let refusal { json.member("refused", refusal.rawValue) }
        }
    }
}

extension KeyRecord {
    fileprivate var statusText: String {
        switch status {
        case .active: "active"
        case .revoked(let second): "revoked at \(UnixTime(seconds: second).iso8601)"
        case .deleted(let second), .erased(let second, _):
            "deleted at \(UnixTime(seconds: second).iso8601)"
        }
    }

    fileprivate var historyText: String {
        let enrolled = enrolledAt.map { "enrolled at \(UnixTime(seconds: $0).iso8601)" }
        let used = lastUsedAt.map { "last used at \(UnixTime(seconds: $0).iso8601)" }
        let origin: [String] =
            switch source {
            case .enrolled: [enrolled ?? "enrolled"]
            case .imported: ["imported"] + (enrolled.map { [$0] } ?? [])
            }
        let ofPhone = platform == .android ? [platform.rawValue] : []
        let parts =
            [appID] + ofPhone + [environment.rawValue] + origin
            + ["counter \(counters.highest.rawValue)", used ?? "never used"]
        return parts.joined(separator: ", ")
    }

    fileprivate func write(into json: inout JSONWriter) {
        writeStatus(into: &json)
        if isErased { return }
        json.member("app_id", appID)
        json.member("platform", platform.rawValue)
        json.member("environment", environment.rawValue)
        json.member("source", source.rawValue)
        json.member("counter", counters.highest.rawValue)
        if let enrolledAt { json.member("enrolled_at", UnixTime(seconds: enrolledAt).iso8601) }
        if let lastUsedAt { json.member("last_used_at", UnixTime(seconds: lastUsedAt).iso8601) }
    }
}
