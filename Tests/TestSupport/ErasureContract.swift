import AppAttest
import Cryptography
import Encodings
import Expectations
package import Foundation
package import KeyStore
import Testing

/// What every store promises of erased keys where others get its keys.
package enum ErasureContract {
    /// Deletes keys in one store, and copies that one into others.
    ///
    /// - target: gets a copy, and has one of the keys already.
    /// - reader: gets an export.
    package static func check(
        from source: some KeyArchive,
        to target: some KeyArchive,
        _ reader: some KeyArchive
    ) throws {
        let note = ChangeNote(now: 9, by: "test")
        let keys = (1...4).map { KeyRecord.sample($0) }
        _ = try source.store(keys)
        // One is alive there, one was erased there too.
        _ = try target.store(Array(keys[0...1]))
        try expectEqual(target.delete(keys[1].keyID, note), .deleted)
        try expectEqual(target.eraseDeleted(), 1)
        try expectEqual(source.revoke(keys[0].keyID, note), .revoked)
        for key in keys.prefix(3) { try expectEqual(source.delete(key.keyID, note), .deleted) }
        try expectEqual(source.eraseDeleted(), 3)
        let first = try source.copy(to: .store(target), note)
        expectEqual([first.inserted, first.deleted, first.differingCount], [1, 3, 0])
        for key in keys.prefix(3) { try checkErased(key, in: target) }
        try expectEqual(target.record(keys[3].keyID), keys[3])
        // The way back brings no key back.
        let back = try target.copy(to: .store(source), note)
        expectEqual([back.inserted, back.raised, back.differingCount], [0, 0, 0])
        let again = try source.copy(to: .store(target), note)
        expectEqual([again.inserted, again.deleted, again.differingCount], [0, 0, 0])
        // Who changed them is known, and no longer which keys they were.
        let changes = try source.changes(of: nil, limit: 9)
        #expect(changes.count >= 4 && changes.allSatisfy { $0.keyID == nil })
        try checkExport(of: target, keys, to: reader)
    }

    private static func checkExport(
        of archive: some KeyArchive,
        _ keys: [KeyRecord],
        to reader: some KeyArchive
    ) throws {
        var lines: [UInt8] = []
        _ = try archive.export { lines += $0 }
        let text = String(decoding: lines, as: UTF8.self)
        for key in keys.prefix(3) { #expect(!text.contains(key.keyID.base64)) }
        let file = FileManager.default.temporaryDirectory.path + "/" + UUID().uuidString
        try Data(lines).write(to: URL(fileURLWithPath: file))
        defer { try? FileManager.default.removeItem(atPath: file) }
        // One of the erased keys is alive there.
        _ = try reader.store([keys[2]])
        let report = try reader.importLines(
            from: file,
            apps: nil,
            skipsProblems: false,
            ChangeNote(now: 9)
        )
        expectEqual(report.problems, [])
        #expect(report.inserted == 1 && report.marks >= 3)
        for key in keys.prefix(3) { try checkErased(key, in: reader) }
        // A part of the keys has no marks of keys of which nobody knows whether they belong to it.
        var part = KeyFilter()
        part.appID = keys[3].appID
        lines = []
        try expectEqual(archive.export(part) { lines += $0 }, 1)
    }

    /// The key is not there, and can't come back.
    private static func checkErased(_ key: KeyRecord, in archive: some KeyArchive) throws {
        let left = try #require(try archive.record(key.keyID))
        #expect(left.isErased && left.keyID != key.keyID)
        guard case .differs(let stored)? = try archive.store([key]).first else {
            Issue.record("an erased key was stored")
            return
        }
        expectEqual(stored.difference(from: key), "the key was deleted, and stays so")
        try expectEqual(
            archive.identities(of: [key.keyID])[key.keyID]?.difference(from: key),
            "the key was deleted, and stays so"
        )
        let note = ChangeNote(now: 10)
        try expectEqual(archive.revoke(key.keyID, note), .unknown)
        try expectEqual(archive.restore(key.keyID, note), .unknown)
        try expectEqual(archive.delete(key.keyID, note), .alreadyDeleted(at: 9))
        try expectEqual(archive.match(.short(key.keyID.logName), deleted: .included), KeyMatch.none)
    }

    /// The ways in which bytes may be written, to look for them in a file.
    package static func spellings(_ bytes: [UInt8]) -> [Data] {
        let base64 = Base64.text(bytes)
        let plain = base64.replacing("=", with: "")
        let url = plain.replacing("+", with: "-").replacing("/", with: "_")
        let hex = bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        return [Data(bytes)] + [plain, url, hex, hex.uppercased()].map { Data($0.utf8) }
    }
}
