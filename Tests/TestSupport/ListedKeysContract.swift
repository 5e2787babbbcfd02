import Expectations
package import KeyStore
import Testing

/// What every store promises where a list of revoked certificates is compared with its keys.
package enum ListedKeysContract {
    private static let note = ChangeNote(now: 50, by: "ann")

    /// Compares all keys with a list of these entries.
    @discardableResult
    package static func compare(
        _ archive: some KeyArchive,
        with list: [Substring: String],
        of date: Int64 = 101,
        passing passed: [Int64] = [],
        now: Int64 = 100
    ) throws -> (comparison: ListComparison, keys: [ListedKey]) {
        var comparison = ListComparison(passing: passed, date: date)
        var keys: [ListedKey] = []
        while try archive.compare(
            &comparison,
            with: { serial in list[serial].map { "\(serial) \($0)" } },
            now: now,
            by: "portcullis",
            told: { keys += $0 }
        ) {}
        return (comparison, keys)
    }

    /// A key that another store's list has revoked is revoked here by that list.
    ///
    /// - archive: without keys.
    package static func checkMerge(_ archive: some KeyArchive) throws {
        var bare = KeyRecord.phone(2)
        bare.chain = nil
        _ = try archive.store([.phone(1), bare])
        var listed = [KeyRecord.phone(1), KeyRecord.phone(2)]
        for index in listed.indices {
            listed[index].status = .revoked(at: 9)
            listed[index].chain?.listed = "8f00 REVOKED"
        }
        _ = try archive.store(listed)
        for record in listed {
            let stored = try #require(try archive.record(record.keyID))
            expectEqual(stored.status, .revoked(at: 9))
            expectEqual(stored.chain, record.chain)
        }
        try compare(archive, with: [:])
        for record in listed {
            try expectEqual(archive.record(record.keyID)?.status, .active)
        }
    }

    /// - archive: without keys.
    package static func check(_ archive: some KeyArchive) throws {
        var phones = (1...5).map { KeyRecord.phone(UInt8($0)) }
        phones[4].chain = nil
        _ = try archive.store(phones + [.sample(9)])
        let serial = { (phone: Int) in Substring(phones[phone].chain?.serials[1] ?? "") }

        let first = try compare(archive, with: [serial(0): "REVOKED", serial(1): "SUSPENDED"])
        expectEqual(first.comparison.compared, 4)
        #expect(first.comparison.revoked == 2 && first.comparison.restored == 0)
        expectEqual(Set(first.keys.map(\.keyID)), [phones[0].keyID, phones[1].keyID])
        let revoked = try #require(try archive.record(phones[0].keyID))
        expectEqual(revoked.status, .revoked(at: 100))
        expectEqual(revoked.chain?.listed, "\(serial(0)) REVOKED")
        let change = try #require(try archive.changes(of: phones[0].keyID, limit: 1).first)
        #expect(change.action == .revoked && change.note.actor == "portcullis")
        expectEqual(change.note.why, "Google's status list: \(serial(0)) REVOKED")
        try expectEqual(archive.record(phones[2].keyID)?.status, .active)

        // The same list changes nothing, and has nothing to tell.
        let again = try compare(archive, with: [serial(0): "REVOKED", serial(1): "SUSPENDED"])
        #expect(again.keys.isEmpty)

        // A command takes a listed key over, and another one revokes a key by itself.
        try expectEqual(archive.revoke(phones[0].keyID, note), .alreadyRevoked(at: 100))
        try expectEqual(archive.record(phones[0].keyID)?.chain?.listed, nil)
        try expectEqual(archive.changes(of: phones[0].keyID, limit: 9).count, 2)
        try expectEqual(archive.revoke(phones[2].keyID, note), .revoked)

        // An older list brings nothing back: another gateway has the newer one.
        let older = try compare(archive, with: [serial(2): "REVOKED"], of: 100)
        #expect(older.keys.isEmpty && older.comparison.withheld == 1)
        try expectEqual(archive.record(phones[1].keyID)?.status, .revoked(at: 100))

        // Where the entries disappear, the one that the list alone has revoked is good again.
        let lifted = try compare(archive, with: [serial(2): "REVOKED"])
        expectEqual(lifted.keys.map(\.keyID), [phones[1].keyID])
        expectEqual(lifted.comparison.restored, 1)
        try expectEqual(archive.record(phones[0].keyID)?.status, .revoked(at: 100))
        let good = try #require(try archive.record(phones[1].keyID))
        #expect(good.status == .active && good.chain?.listed == nil)
        try expectEqual(archive.changes(of: phones[1].keyID, limit: 1).first?.action, .restored)
        // What a command has revoked is not the list's, although the list names it.
        try expectEqual(archive.record(phones[2].keyID)?.chain?.listed, nil)
        try compare(archive, with: [:])
        try expectEqual(archive.record(phones[2].keyID)?.status, .revoked(at: 50))

        // A restored key that the list still names is revoked by the next comparison.
        try compare(archive, with: [serial(3): "REVOKED"])
        try expectEqual(archive.restore(phones[3].keyID, note), .restored)
        try expectEqual(archive.record(phones[3].keyID)?.chain?.listed, nil)
        let anew = try compare(archive, with: [serial(3): "REVOKED"])
        expectEqual(anew.keys.map(\.keyID), [phones[3].keyID])
        // One that goes on with a list passes over the keys that it has compared.
        expectEqual(anew.comparison.recent.count, 4)
        try expectEqual(archive.restore(phones[3].keyID, note), .restored)
        let next = try compare(
            archive,
            with: [serial(3): "REVOKED"],
            passing: anew.comparison.recent
        )
        #expect(next.keys.isEmpty && next.comparison.compared == 4)

        // Any certificate of a chain counts, and a deleted key is left alone.
        _ = try archive.delete(phones[3].keyID, note)
        let all = try compare(archive, with: ["8f00": "REVOKED"])
        expectEqual(all.keys.map(\.keyID), [phones[1].keyID])
        try expectEqual(archive.record(KeyRecord.sample(9).keyID)?.status, .active)
    }
}
