import AppAttest
import Cryptography
import Encodings
import Expectations
import GRDB
import KeyStore
import TestSupport
import Testing

@testable import SQLiteKeyStore

@Suite struct KeyImportTests {
    private let folder: TemporaryFolder
    private let keys: KeyAdministration

    init() throws {
        folder = try TemporaryFolder()
        keys = try KeyAdministration(path: folder.database, creates: true)
    }

    /// The five members of a line, one of them changed or left out.
    private func line(
        _ seed: UInt8 = 1,
        counter: String = "7",
        _ name: String = "",
        _ value: String? = nil
    ) -> String {
        let key = KeyRecord.sample(seed)
        var members = [
            ("key_id", "\"\(key.keyID.base64)\""), ("app_id", "\"\(key.appID)\""),
            ("environment", "\"production\""),
            ("public_key", "\"\(Base64.text(key.publicKey.x963))\""), ("counter", counter),
        ]
        members.removeAll { $0.0 == name }
        if let value { members.append((name, value)) }
        return "{" + members.map { "\"\($0.0)\": \($0.1)" }.joined(separator: ", ") + "}"
    }

    private func importing(
        _ lines: [String],
        apps: Set<String>? = nil,
        skips: Bool = false
    ) throws -> ImportReport {
        let file = try folder.write(lines.joined(separator: "\n"), to: "keys.jsonl")
        return try keys.importLines(from: file, apps: apps, skipsProblems: skips)
    }

    @Test func `a line of five members is a key whose earlier counters all count as used`() throws {
        let report = try importing([line()])
        #expect(report.isImported)
        expectEqual(report.inserted, 1)
        let record = try #require(try keys.record(KeyRecord.sample(1).keyID))
        expectEqual(record.counters, CounterState(highest: SignCounter(rawValue: 7), seen: .max))
        expectEqual(record.source, .imported)
        expectEqual(record.status, .active)
        expectEqual(record.enrolledAt, nil)
        expectEqual(record.lastUsedAt, nil)
    }

    @Test func `a line of a deleted key stops an import also where all keys are deleted`() throws {
        try expectEqual(importing([line(1)]).inserted, 1)
        try expectEqual(keys.delete(KeyRecord.sample(1).keyID, ChangeNote(now: 5)), .deleted)
        let report = try importing([line(2), line(1)])
        #expect(!report.isImported)
        expectEqual(report.problems.map(\.line), [2])
        try expectEqual(keys.count(), 0)
    }

    @Test func `escapes, blanks, empty lines and line ends of another system are read`() throws {
        let slashed = line().replacing("/", with: "\\/").replacing("com", with: "c\\u006fm")
        let report = try importing(["", "  " + slashed + " \r", "", line(2), ""])
        #expect(report.problems.isEmpty)
        expectEqual(report.inserted, 2)
        expectEqual(report.lines, 2)
    }

    @Test func `with any bad line nothing is imported, and every problem has its line`() throws {
        let report = try importing([
            line(1), "{", line(2, counter: "-1"), line(3), line(4, "app_id"),
        ])
        #expect(!report.isImported)
        expectEqual(report.problems.map(\.line), [2, 3, 5])
        expectEqual(report.problems[1].description, "line 3: counter: use a number, 0…4294967295")
        try expectEqual(keys.count(), 0)
    }

    @Test func `bad lines can be skipped`() throws {
        let report = try importing([line(1), "nonsense", line(2)], skips: true)
        expectEqual(report.inserted, 2)
        expectEqual(report.problems.map(\.line), [2])
        expectEqual(report.lines, 3)
    }

    @Test(
        arguments: [
            ("key_id", "\"AAAA\"", "key_id"), ("key_id", "5", "key_id"),
            ("app_id", "\"\"", "app_id"), ("app_id", "\"a b\"", "app_id"),
            ("environment", "\"sandbox\"", "environment"), ("public_key", "\"AAAA\"", "65"),
            ("public_key", "\"*\"", "base64"), ("counter", "4294967296", "counter"),
            ("counter", "1.5", "whole"), ("counter", "1e3", "whole"), ("counter", "01", "zero"),
            ("counter", "\"7\"", "counter"), ("counter", "99999999999999999999", "large"),
            ("counter", "null", "counter"), ("counter", "[1]", "use a string"),
            ("window", "\"12\"", "window"), ("window", "\"zzzzzzzzzzzzzzzz\"", "window"),
            ("status", "\"gone\"", "status"), ("revoked_at", "\"2026-01-01T00:00:00Z\"", "status"),
            ("enrolled_at", "\"yesterday\"", "enrolled_at"), ("source", "true", "source"),
            ("receipt", "\"\"", "receipt"), ("context", "\"\"", "context"),
            ("context", "7", "context"),
            ("context", "\"\(String(repeating: "A", count: 344))\"", "256"),
            ("platform", "\"windows\"", "apple or android"), ("serials", "\"1\"", "android"),
            ("certificates_issued", "8", "serials"), ("listed", "\"1 REVOKED\"", "serials"),
            ("serials", "\"01\"", "zeros"), ("serials", "\"A\"", "lower"),
            ("serials", "\"\"", "1…10"), ("serials", "7", "1…10"),
            ("serials", "\"1 2 3 4 5 6 7 8 9 a b\"", "1…10"), ("listed", "\"\"", "ASCII"),
            ("keyid", "1", "no member"),
            ("app_id", "\"\\ud800\"", "escape"), ("app_id", "\"\\x\"", "escape"),
            ("app_id", "\"\u{1}\"", "control"), ("app_id", "tru", "use a string"),
        ] as [(String, String, String)]
    )
    func `a member that is wrong is named`(name: String, value: String, word: String) throws {
        let report = try importing([line(1, name, value)])
        expectEqual(report.problemCount, 1)
        expectEqual(report.problems.first?.text.contains(word), true, "\(report.problems)")
    }

    @Test(arguments: ["key_id", "app_id", "environment", "public_key", "counter"])
    func `a member that is missing is named`(name: String) throws {
        try expectEqual(importing([line(1, name)]).problems.map(\.text), ["\(name) is missing"])
    }

    @Test(arguments: [
        "{}x", "[]", "{\"counter\":1,}", "{\"counter\" 1}", "{counter:1}", "\"", "{\"a",
    ])
    func `what is no object is refused`(text: String) throws {
        try expectEqual(importing([text]).problemCount, 1)
    }

    @Test func `a member that is given twice is refused`() throws {
        let twice = line().dropLast() + ", \"counter\": 9}"
        try expectEqual(
            importing([String(twice)]).problems.map(\.text),
            ["\"counter\" is given twice"]
        )
    }

    @Test func `a line that is too long is refused, and the next one read`() throws {
        let long = line(1, "receipt", "\"\(String(repeating: "A", count: 400_000))\"")
        let report = try importing([long, line(2)], skips: true)
        expectEqual(report.problems.map(\.line), [1])
        expectEqual(report.problems.first?.text.contains("65536"), true)
        expectEqual(report.inserted, 1)
    }

    @Test func `a point that is not on the curve is refused`() throws {
        var bytes = KeyRecord.sample(1).publicKey.x963
        bytes[64] ^= 1
        let report = try importing([line(1, "public_key", "\"\(Base64.text(bytes))\"")])
        expectEqual(report.problems.first?.text.contains("curve"), true)
        bytes[0] = 2
        let other = try importing([line(1, "public_key", "\"\(Base64.text(bytes))\"")])
        expectEqual(other.problems.first?.text.contains("04"), true)
    }

    @Test func `a key that is stored is only raised, keeps its status, and stays what it is`()
        throws
    {
        try expectEqual(importing([line(1, counter: "50")]).inserted, 1)
        let keyID = KeyRecord.sample(1).keyID
        try expectEqual(keys.revoke(keyID, ChangeNote(now: 9)), .revoked)
        try expectEqual(importing([line(1, counter: "40")]).merged, 1)
        try expectEqual(keys.record(keyID)?.counters.highest.rawValue, 50)
        try expectEqual(importing([line(1, counter: "60")]).merged, 1)
        try expectEqual(keys.record(keyID)?.counters.highest.rawValue, 60)
        try expectEqual(keys.record(keyID)?.status, .revoked(at: 9))
        try expectEqual(keys.count(), 1)
    }

    @Test func `another public key, app or environment for a stored key is refused`() throws {
        try expectEqual(importing([line(1)]).inserted, 1)
        let other = Base64.text(KeyRecord.sample(2).publicKey.x963)
        let report = try importing([
            line(1, "public_key", "\"\(other)\""), line(1, "app_id", "\"A.other\""),
            line(1, "environment", "\"test\""), line(1),
        ])
        expectEqual(report.problems.map(\.line), [1, 2, 3])
        #expect(!report.isImported)
        #expect(report.problems[1].text.contains("ABCDE12345.com.example.shop"))
    }

    @Test func `a key that comes twice in a file with two public keys keeps the first in order`()
        throws
    {
        let other = Base64.text(KeyRecord.sample(2).publicKey.x963)
        let report = try importing([line(1), line(1, "public_key", "\"\(other)\"")])
        expectEqual(report.problemCount, 1)
        expectEqual(report.inserted, 1)
        try expectEqual(keys.count(), 1)
    }

    @Test func `apps that are not in the configuration are refused`() throws {
        let report = try importing([line(1), line(2, "app_id", "\"A.b\"")], apps: ["A.b"])
        expectEqual(report.problems.map(\.line), [1])
        try expectEqual(importing([line(2, "app_id", "\"A.b\"")], apps: ["A.b"]).inserted, 1)
    }

    @Test func `key ids that are no digests of their keys are imported and counted`() throws {
        let lines = KeyRecord.many(3).map(KeyLine.text) + [line(1)]
        let report = try importing(lines)
        expectEqual(report.inserted, 4)
        expectEqual(
            report.warnings,
            [
                "3 key ids are not the SHA-256 of their public key: no device will ever match them"
            ]
        )
    }

    @Test func `many lines go through many reads and more than one transaction`() throws {
        // A transaction has 20,000.
        let records = KeyRecord.many(20_500)
        let report = try importing(records.map(KeyLine.text))
        expectEqual(report.inserted, 20_500)
        try expectEqual(keys.count(), 20_500)
        let revision = try keys.read { try Int.fetchOne($0, sql: "SELECT revision FROM state") }
        expectEqual(revision, 2)
        let again = try importing(records.suffix(1_000).map(KeyLine.text))
        expectEqual(again.merged, 1_000)
        #expect(again.problems.isEmpty)
    }

    @Test func `a file that is not there is named, with what to give instead`() {
        let problem = #expect(throws: StoreProblem.self) {
            try keys.importLines(from: folder.path + "/none")
        }
        expectEqual(problem?.description.contains("/none: can't be read"), true)
        expectEqual(problem?.hint.hasPrefix("give a file of lines"), true)
    }
}
