import AppAttest
import Cryptography
import Encodings
import Expectations
import HTTPWire
import KeyStore
import Rules
import Testing
import Verification

@testable import Services

struct RecentRefusalsTests {
    private static let keyID = KeyID(SHA256.digest(of: Array("key".utf8)))

    private func note(
        _ number: UInt64,
        from client: IPAddress = .v4(1),
        _ outcome: LocalOutcome = .refused(.assertionMissing),
        _ fate: RefusalNote.Fate = .answered,
        keyID: KeyID? = nil
    ) -> RefusalNote {
        let asked = RefusalNote.Asked(
            method: Array("POST".utf8),
            host: Array("a".utf8),
            path: Array("/v1/orders".utf8) + Array(repeating: UInt8(ascii: "x"), count: 1000)
        )
        var note = RefusalNote(
            at: Int64(number) * 1000,
            name: (RequestID(0, number), nil),
            asked: (client, asked),
            end: (outcome, fate, fate == .answered ? outcome.row.status : 0),
            place: .rule("orders", .enforce)
        )
        note.finding = .init(
            Verdict(.refuse(.assertionMissing), keyID: keyID),
            isEnforced: fate == .answered
        )
        return note
    }

    private func name(_ text: String) throws -> RefusalName {
        try #require(RefusalName(Array(text.utf8)))
    }

    private func isKnown(_ number: UInt64, _ refusals: RecentRefusals) throws -> Bool {
        try !refusals.notes(named: name(RequestID(0, number).text)).isEmpty
    }

    @Test func `one address can't push out the refusals of others`() throws {
        var refusals = RecentRefusals()
        for number in 1...100 { refusals.add(note(UInt64(number), from: .v4(UInt32(number)))) }
        // An IPv6 client has all addresses of its network.
        for number in 1000..<5000 {
            refusals.add(
                note(UInt64(number), from: .v6(high: 0x2001_0DB8 << 32, low: UInt64(number)))
            )
        }
        expectEqual(refusals.count, 100 + RecentRefusals.ofAddressMax)
        for number in 1...100 { #expect(try isKnown(UInt64(number), refusals)) }
        #expect(try isKnown(4999, refusals) && !isKnown(1000, refusals))
    }

    @Test func `a full refusals forgets the oldest`() throws {
        var refusals = RecentRefusals()
        let all = RecentRefusals.notesMax + 10
        for number in 1...all { refusals.add(note(UInt64(number), from: .v4(UInt32(number)))) }
        expectEqual(refusals.count, RecentRefusals.notesMax)
        #expect(
            try !isKnown(10, refusals) && isKnown(11, refusals) && isKnown(UInt64(all), refusals)
        )
    }

    @Test func `what was only observed pushes out no answer`() throws {
        var memory = RefusalMemory()
        memory.add(note(1, from: .v4(1)))
        for number in 2...2000 {
            memory.add(
                note(UInt64(number), from: .v4(UInt32(number)), .refused(.keyUnknown), .forwarded)
            )
        }
        #expect(memory.answered.count == 1 && memory.forwarded.count == RecentRefusals.notesMax)
        try expectEqual(memory.notes(named: name(RequestID(0, 1).text)).count, 1)
        expectEqual(memory.notes(named: nil).count, memory.answered.count + memory.forwarded.count)
    }

    @Test func `a key is found by its short name, and by nothing shorter than 4 digits`() throws {
        var refusals = RecentRefusals()
        refusals.add(note(1, keyID: Self.keyID))
        refusals.add(note(2))
        let short = Self.keyID.logName
        try expectEqual(refusals.notes(named: name(short)).count, 1)
        try expectEqual(refusals.notes(named: name(String(short.prefix(4)))).count, 1)
        #expect(try refusals.notes(named: name(String(short.prefix(3)))).isEmpty)
    }

    /// As `portcullis why` and the dashboard take it; a fleet's database gets the short name.
    @Test func `a key is found by its key id, which is not told to others`() throws {
        var refusals = RecentRefusals()
        refusals.add(note(1, keyID: Self.keyID))
        refusals.add(note(2))
        let named = try name(Self.keyID.base64)
        expectEqual(refusals.notes(named: named).count, 1)
        expectEqual(named.word, Self.keyID.logName)
    }

    @Test(arguments: ["", "a b", "a\n", String(repeating: "a", count: 65)])
    func `what can be no name is none`(text: String) {
        #expect(RefusalName(Array(text.utf8)) == nil)
    }

    @Test func `what is told is bounded, and has no key id`() throws {
        var refusals = RecentRefusals()
        for number in 1...30 { refusals.add(note(UInt64(number), keyID: Self.keyID)) }
        let key = try name(Self.keyID.logName)
        let found = ToldRefusals(refusals.notes(named: key), named: key)
        let text = found.text
        expectEqual(text.split(separator: "\n").filter { $0.hasPrefix("  asked") }.count, 20)
        #expect(text.utf8.count < 20 * 1200)
        // The latest comes first.
        #expect(text.hasPrefix("1970-01-01T00:00:30Z assertion-missing: The request carries no"))
        let json = String(decoding: found.json, as: UTF8.self)
        for told in [text, json] {
            #expect(told.contains(Self.keyID.logName) && !told.contains(Self.keyID.base64))
        }
    }

    @Test(arguments: Refusal.allCases)
    func `every refusal says what failed and what the client does next`(refusal: Refusal) {
        let told = ToldRefusals([note(1, .refused(refusal))], named: nil).text
        let row = LocalOutcome.refused(refusal).row
        #expect(told.contains("\(refusal.rawValue): \(row.title)"))
        #expect(told.contains("  client  \(row.nextStep.advice)\n"))
    }

    @Test func `what another gateway tells is found by its names, the latest first`() throws {
        let key = try name(String(Self.keyID.logName.prefix(6)))
        let notes = [note(3, keyID: Self.keyID), note(2), note(5, keyID: Self.keyID)]
        let listed = ToldRefusals(notes, named: nil, of: "g1")
        let read = try ToldRefusals(told: listed.told)
        var all = ToldRefusals([note(4, keyID: Self.keyID)], named: key, of: "g0")
        all.add(read, named: key)
        all.gateways = ToldGateways([
            .init("g0", .answered), .init("g1", .lastSaid(7, hasEnded: false)),
        ])
        let blocks = all.text.split(separator: "\n").filter { $0.hasPrefix("  gateway ") }
        expectEqual(blocks, ["  gateway g1", "  gateway g0", "  gateway g1"])
        #expect(all.text.hasSuffix("\n\ng1 has not answered: what it said 7 s ago counts\n"))
        let json = String(decoding: all.json, as: UTF8.self)
        #expect(json.hasPrefix(#"{"refusals":[{"time":"1970-01-01T00:00:05Z","gateway":"g1","#))
        #expect(json.contains(#"}],"gateways":[{"name":"g0","answered":true,"age_seconds":0},"#))
        #expect(!json.contains(Self.keyID.base64))
        let told = listed.told
        for count in 0..<told.count {
            #expect(throws: ByteReader.Fault.self) {
                try ToldRefusals(told: Array(told[..<count]))
            }
        }
        // An id is compared whole.
        var none = ToldRefusals([], named: try name("00"), of: "g0")
        none.add(read, named: try name("00"))
        #expect(none.isEmpty)
    }
}
