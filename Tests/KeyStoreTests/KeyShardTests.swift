import AppAttest
import Cryptography
import Expectations
import TestSupport
import Testing

@testable import KeyStore

@Suite struct KeyShardTests {
    private static let records = KeyRecord.crowd(300)

    private static func entry(_ number: Int) -> KeyEntry {
        let record = records[number]
        return KeyEntry(
            KeyRow(
                row: Int64(number + 1),
                keyID: record.keyID,
                publicKey: record.publicKey,
                app: AppNumbers().number(of: "a"),
                environment: .test,
                counters: CounterState(),
                standing: .active
            )
        )
    }

    /// Hashes of few values, so that most searches pass others.
    private static func hash(_ id: KeyID) -> UInt32 { UInt32(id.bytes[0] % 8) &* 0x0101_0101 }

    @Test func `in a full shard each key that is there is found, and no other`() {
        let entries = (0..<300).map(Self.entry)
        var shard = KeyShard(countMax: 40)
        var here: [KeyID] = []
        for (count, entry) in entries.enumerated() {
            if shard.isFull {
                let number = shard.replace(
                    with: entry,
                    hash: Self.hash(entry.id),
                    keepsAhead: true,
                    rehash: Self.hash
                )
                #expect(number != nil)
            } else {
                shard.insert(entry, hash: Self.hash(entry.id), rehash: Self.hash)
            }
            here = entries[...count].map(\.id).filter { shard.find($0, hash: Self.hash($0)) != nil }
            expectEqual(here.count, min(count + 1, 40))
            #expect(here.contains(entry.id))
        }
        expectEqual(shard.count, 40)
    }

    @Test func `a key that is looked up again and again stays, one that is ahead is kept`() {
        let entries = (0..<200).map(Self.entry)
        var shard = KeyShard(countMax: 10)
        func number(_ place: Int) -> Int? {
            shard.find(entries[place].id, hash: Self.hash(entries[place].id))
        }
        for entry in entries.prefix(10) {
            shard.insert(entry, hash: Self.hash(entry.id), rehash: Self.hash)
        }
        if let ahead = number(1) { shard[ahead].isAhead = true }
        for entry in entries.dropFirst(10) {
            if let recent = number(0) { shard.touch(recent) }
            _ = shard.replace(
                with: entry,
                hash: Self.hash(entry.id),
                keepsAhead: true,
                rehash: Self.hash
            )
        }
        #expect(number(0) != nil)
        #expect(number(1) != nil)
        expectEqual(number(2), nil)
        for place in 0..<shard.count { shard[place].isAhead = true }
        let late = entries[20]
        func replace(_ keepsAhead: Bool) -> Int? {
            shard.replace(
                with: late,
                hash: Self.hash(late.id),
                keepsAhead: keepsAhead,
                rehash: Self.hash
            )
        }
        expectEqual(replace(true), nil)
        #expect(replace(false) != nil)
    }

    @Test func `of a deleted key only the id stays in memory`() throws {
        let entry = Self.entry(0)
        var shard = KeyShard()
        shard.insert(entry, hash: Self.hash(entry.id), rehash: Self.hash)
        shard[0].counters = CounterState(highest: SignCounter(rawValue: 41))
        shard.keep([1, 2, 3], for: 0)
        let bytes = shard.bytes
        shard.set(.revoked, of: 0)
        expectEqual(shard[0].publicKey, entry.publicKey)
        expectEqual(shard[0].counters.highest.rawValue, 41)
        shard.set(.deleted, of: 0)
        expectEqual(shard[0].publicKey, .ofErasedKeys)
        expectEqual(shard[0].counters, CounterState())
        #expect(shard.bytes < bytes)
        expectEqual(shard.find(entry.id, hash: Self.hash(entry.id)), 0)
    }
}
