import Cryptography
import DeviceKey
import Encodings
package import KeyStore
import Rules
import Verification

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

    init(_ keyID: KeyID, _ finding: KeyFinding, _ rule: Rule?, _ apps: [AppPolicy]) {
        self.keyID = keyID
        self.finding = finding
        guard let rule, rule.mode.verifies else {
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
                if case .deleted = record.status {
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
            lines.append("    " + record.historyText)
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
        case .deleted(let second): "deleted at \(UnixTime(seconds: second).iso8601)"
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
        json.member("app_id", appID)
        json.member("platform", platform.rawValue)
        json.member("environment", environment.rawValue)
        json.member("source", source.rawValue)
        json.member("counter", counters.highest.rawValue)
        if let enrolledAt { json.member("enrolled_at", UnixTime(seconds: enrolledAt).iso8601) }
        if let lastUsedAt { json.member("last_used_at", UnixTime(seconds: lastUsedAt).iso8601) }
    }
}
