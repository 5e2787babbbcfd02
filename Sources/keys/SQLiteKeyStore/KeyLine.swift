internal import AppAttest
internal import ByteCoding
internal import Cryptography
package import KeyStore

/// One key as a line of JSON: what `keys export` writes and `keys import` reads.
///
/// | member | value | at import |
/// |---|---|---|
/// | `key_id` | base64 of 32 octets | asked for |
/// | `app_id` | App ID | asked for |
/// | `environment` | `production`, `development` or `test` | asked for |
/// | `public_key` | base64 of the X9.62 point, 65 octets | asked for |
/// | `counter` | 0…4294967295 | asked for |
/// | `window` | 16 hexadecimal digits: which of the 64 counters below were used | all of them |
/// | `status` | `active` or `revoked` | `active` |
/// | `revoked_at`, `enrolled_at`, `last_used_at` | RFC 3339 in UTC, or null | null |
/// | `source` | `enrolled` or `imported` | `imported` |
/// | `receipt` | base64, or null | null |
package enum KeyLine {
    /// Why a line can't be read.
    package struct Problem: Error {
        let text: String

        init(_ text: String) { self.text = text }
    }

    /// The longest line; a receipt takes a few thousand octets.
    package static let octetsMax = 65_536

    // MARK: Writing

    /// The line of a key, with its line feed.
    package static func octets(_ record: KeyRecord) -> [UInt8] {
        Array((text(record) + "\n").utf8)
    }

    /// The JSON object of a key, in one line.
    package static func text(_ record: KeyRecord) -> String {
        var members = [
            member("key_id", record.keyID.base64),
            member("app_id", record.appID),
            member("environment", record.environment.rawValue),
            member("public_key", Base64.text(record.publicKey.x963)),
            "\"counter\":\(record.counters.highest.rawValue)",
            member("window", window(record.counters.seen)),
        ]
        switch record.status {
        case .active: members.append(member("status", "active"))
        case .revoked(let second):
            members.append(member("status", "revoked"))
            members.append(member("revoked_at", UnixTime(seconds: second).iso8601))
        }
        if let second = record.enrolledAt {
            members.append(member("enrolled_at", UnixTime(seconds: second).iso8601))
        }
        if let second = record.lastUsedAt {
            members.append(member("last_used_at", UnixTime(seconds: second).iso8601))
        }
        members.append(member("source", record.source.rawValue))
        if let receipt = record.receipt { members.append(member("receipt", Base64.text(receipt))) }
        return "{" + members.joined(separator: ",") + "}"
    }

    private static func window(_ seen: UInt64) -> String {
        let digits = String(seen, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    private static func member(_ name: String, _ value: String) -> String {
        var escaped = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"", "\\": escaped += "\\\(scalar)"
            case _ where scalar.value < 0x20:
                escaped += "\\u00" + Hex.text([UInt8(scalar.value)])
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return "\"\(name)\":\"\(escaped)\""
    }

    // MARK: Reading

    /// Reads a line without its line feed.
    ///
    /// Checked: the JSON, then each member as it comes, then that none is missing.
    package static func record(_ line: Span<UInt8>) throws(Problem) -> KeyRecord {
        guard line.count <= octetsMax else {
            throw Problem("\(line.count) octets; a line has \(octetsMax) at most")
        }
        var draft = KeyLineDraft()
        var reader = FlatJSONReader()
        try reader.members(of: line) { (name, value) throws(Problem) in
            try draft.take(name, value)
        }
        return try draft.record()
    }
}
