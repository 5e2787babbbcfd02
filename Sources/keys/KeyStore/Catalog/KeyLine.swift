internal import Cryptography
internal import DeviceKey
package import Encodings

/// One key as a line of JSON: what `keys export` writes and `keys import` reads.
///
/// | member | value | at import |
/// |---|---|---|
/// | `key_id` | base64 of 32 bytes | asked for |
/// | `platform` | `apple` or `android` | `apple` |
/// | `app_id` | App ID | asked for |
/// | `environment` | `production`, `development` or `test` | asked for |
/// | `public_key` | base64 of the X9.62 point, 65 bytes | asked for |
/// | `counter` | 0…4294967295 | asked for |
/// | `window` | 16 hexadecimal digits: which of the 64 counters below were used | all of them |
/// | `status` | `active` or `revoked` | `active` |
/// | `revoked_at`, `enrolled_at`, `last_used_at` | RFC 3339 in UTC, or null | null |
/// | `source` | `enrolled` or `imported` | `imported` |
/// | `receipt` | base64, or null | null |
/// | `receipt_created_at`, `receipt_not_before` | RFC 3339 in UTC, or null | null |
/// | `receipt_expires_at` | RFC 3339 in UTC, or null | null |
/// | `risk_metric` | 0…4294967295, or null | null |
/// | `risk_metric_at` | RFC 3339 in UTC, or null | null |
/// | `renewal_tried_at` | RFC 3339 in UTC, or null | null |
/// | `renewal_due_at` | RFC 3339 in UTC, or null for never | at once |
/// | `renewal_outcome` | as in ``ReceiptState/Outcome``, or null | null |
/// | `serials` | of an Android key's certificates, hexadecimal, separated by blanks | none |
/// | `certificates_issued` | 0…4294967295, or null: the phone's certificates of 30 days | null |
/// | `listed` | entry of Google's list for which the key is revoked, or null | null |
/// | `context` | base64 of 1…256 bytes, or null | null |
///
/// An erased key has another line, with these members alone:
///
/// | member | value | at import |
/// |---|---|---|
/// | `erased` | base64 of 32 bytes: the key's mark | asked for |
/// | `erased_under` | base64 of 32 bytes: the secret of the mark | asked for |
/// | `deleted_at` | RFC 3339 in UTC | asked for |
package enum KeyLine {
    /// Why a line can't be read.
    package struct Problem: Error {
        let text: String

        init(_ text: String) { self.text = text }
    }

    /// The longest line; a receipt takes a few thousand bytes.
    package static let bytesMax = 65_536

    // MARK: Writing

    /// The line of a key, with its line feed.
    package static func bytes(_ record: KeyRecord) -> [UInt8] { written(record).line }

    /// The JSON object of a key, in one line.
    package static func text(_ record: KeyRecord) -> String { written(record).text }

    /// The object for people. It has neither mark nor secret of an erased key: who looks up a key
    /// by its id learns that it was deleted, and when.
    ///
    /// - layout: indented, it has only the size of the receipt, which is some thousand bytes.
    package static func shown(_ record: KeyRecord, _ layout: JSONWriter.Layout) -> String {
        guard case .erased(let second, _) = record.status else {
            return written(record, layout).text
        }
        var json = JSONWriter(layout)
        json.object { json in
            json.member("status", "deleted")
            json.member("deleted_at", UnixTime(seconds: second).iso8601)
        }
        return json.text
    }

    private static func written(
        _ record: KeyRecord,
        _ layout: JSONWriter.Layout = .compact
    ) -> JSONWriter {
        var json = JSONWriter(layout)
        if case .erased(let second, let secret) = record.status {
            json.object { json in
                json.member("erased", record.keyID.base64)
                json.member("erased_under", Base64.text(secret.bytes))
                json.member("deleted_at", UnixTime(seconds: second).iso8601)
            }
            return json
        }
        json.object { json in
            json.member("key_id", record.keyID.base64)
            json.member("platform", record.platform.rawValue)
            json.member("app_id", record.appID)
            json.member("environment", record.environment.rawValue)
            json.member("public_key", Base64.text(record.publicKey.x963))
            json.member("counter", record.counters.highest.rawValue)
            json.member("window", window(record.counters.seen))
            record.writeStatus(into: &json)
            time("enrolled_at", second: record.enrolledAt, json: &json)
            time("last_used_at", second: record.lastUsedAt, json: &json)
            json.member("source", record.source.rawValue)
            if let receipt = record.receipt {
                if layout == .indented {
                    json.member("receipt_bytes", receipt.count)
                } else {
                    json.member("receipt", Base64.text(receipt))
                }
                write(record.receiptState, &json)
            }
            if let chain = record.chain {
                json.member("serials", chain.serialText)
                if let count = chain.certificatesIssued {
                    json.member("certificates_issued", count)
                }
                if let listed = chain.listed { json.member("listed", listed) }
            }
            if let context = record.context { json.member("context", Base64.text(context)) }
        }
        return json
    }

    private static func write(_ state: ReceiptState, _ json: inout JSONWriter) {
        time("receipt_created_at", second: state.createdAt, json: &json)
        time("receipt_not_before", second: state.notBefore, json: &json)
        time("receipt_expires_at", second: state.expiresAt, json: &json)
        if let metric = state.riskMetric { json.member("risk_metric", metric) }
        time("risk_metric_at", second: state.metricAt, json: &json)
        time("renewal_tried_at", second: state.triedAt, json: &json)
        if let outcome = state.outcome { json.member("renewal_outcome", outcome.rawValue) }
        // 0 means at once, and is no time.
        if let due = state.dueAt, due > 0 { time("renewal_due_at", second: due, json: &json) }
    }

    private static func time(_ name: String, second: Int64?, json: inout JSONWriter) {
        if let second { json.member(name, UnixTime(seconds: second).iso8601) }
    }

    private static func window(_ seen: UInt64) -> String {
        let digits = String(seen, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    // MARK: Reading

    /// Reads a line without its line feed.
    ///
    /// Checked: the JSON, then each member in the order of the line, then that none is missing.
    package static func record(_ line: Span<UInt8>) throws(Problem) -> KeyRecord {
        guard line.count <= bytesMax else {
            throw Problem("\(line.count) bytes; a line has \(bytesMax) at most")
        }
        var draft = KeyLineDraft()
        var reader = JSONReader()
        try reading { () throws(JSONError) in try reader.beginObject(line) }
        while let name = try reading({ () throws(JSONError) in try reader.nextName(line) }) {
            try draft.take(name, reading { () throws(JSONError) in try reader.scalar(line) })
        }
        try reading { () throws(JSONError) in try reader.end(line) }
        return try draft.record()
    }

    private static func reading<Value>(
        _ body: () throws(JSONError) -> Value
    ) throws(Problem) -> Value {
        do throws(JSONError) {
            return try body()
        } catch {
            throw Problem(error.description)
        }
    }
}

extension KeyRecord {
    /// Writes the members `status` and, but for an active key, since when it is so.
    package func writeStatus(into json: inout JSONWriter) {
        switch status {
        case .active: json.member("status", "active")
        case .revoked(let second):
            json.member("status", "revoked")
            json.member("revoked_at", UnixTime(seconds: second).iso8601)
        // Only `keys show` and `explain` write it: no export has it.
        case .deleted(let second), .erased(let second, _):
            json.member("status", "deleted")
            json.member("deleted_at", UnixTime(seconds: second).iso8601)
        }
    }
}
