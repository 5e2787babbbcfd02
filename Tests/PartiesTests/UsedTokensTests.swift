import AppAttest
import Cryptography
import Encodings
import Expectations
import HTTPWire
import Testing

@testable import Parties

@Suite struct UsedTokensTests {
    private static let day: Int64 = 86_400
    private static let hour: Int64 = 3_600

    private static func token(_ number: Int) -> SHA256Digest {
        SHA256.digest(of: Array("token \(number)".utf8))
    }

    private static func client(_ number: Int, at address: String? = nil) throws -> TokenClient {
        let digest = SHA256.digest(of: Array("key \(number)".utf8))
        let keyID: KeyID = try #require(KeyID(bytes: digest.array))
        return TokenClient(
            keyID,
            at: try address.map { try #require(IPAddress($0)) }
        )
    }

    private static func tokens(_ max: Int = 1_000_000) -> UsedTokens {
        UsedTokens(UsedTokens.Limits(tokensMax: max))
    }

    /// A macro can't call what changes a value.
    private func expect(
        _ found: UsedTokens.Beginning,
        _ expected: UsedTokens.Beginning,
        _ place: SourceLocation = #_sourceLocation
    ) {
        expectEqual(found, expected, sourceLocation: place)
    }

    /// A token is shown, and Apple takes it.
    private func use(
        _ number: Int,
        of client: TokenClient?,
        _ used: inout UsedTokens,
        now: Int64 = 0
    ) -> UsedTokens.Beginning {
        let beginning = used.begin(Self.token(number), of: client, now: now)
        if beginning == .begun {
            used.end(Self.token(number), of: client, isSpent: true, now: now)
        }
        return beginning
    }

    // MARK: Once

    @Test func `a token that Apple took is good once, with whichever key`() throws {
        var used = Self.tokens()
        expect(use(1, of: try Self.client(1), &used), .begun)
        expect(use(1, of: try Self.client(1), &used), .used)
        expect(use(1, of: try Self.client(2), &used), .used)
        expect(use(1, of: nil, &used), .used)
        expect(use(2, of: try Self.client(1), &used), .begun)
    }

    @Test func `a token that is being asked about is not good beside that`() throws {
        var used = Self.tokens()
        expect(used.begin(Self.token(1), of: try Self.client(1), now: 0), .begun)
        expect(used.begin(Self.token(1), of: try Self.client(1), now: 0), .used)
        expect(used.begin(Self.token(1), of: nil, now: 0), .used)
    }

    @Test func `a token about which Apple told nothing may come again`() throws {
        var used = Self.tokens()
        expect(used.begin(Self.token(1), of: try Self.client(1), now: 0), .begun)
        used.end(Self.token(1), of: try Self.client(1), isSpent: false, now: 0)
        expectEqual(used.count, 0)
        expect(use(1, of: try Self.client(1), &used), .begun)
    }

    /// The attack: 257 tokens of a clean device served a flagged one for ever. A key that used more
    /// than 256 had its oldest forgotten.
    @Test func `no number of other tokens makes a used one good again`() throws {
        var used = Self.tokens()
        expect(use(0, of: try Self.client(0), &used), .begun)
        for number in 1...20_000 {
            // Of the same key, and of many.
            let client = try Self.client(number % 2 == 0 ? 0 : number)
            expect(use(number, of: client, &used, now: Int64(number)), .begun)
        }
        for number in [0, 1, 2, 256, 257, 9_999, 20_000] {
            expect(use(number, of: try Self.client(number), &used, now: 20_001), .used)
        }
        expectEqual(used.count, 20_001)
    }

    @Test func `tokens are remembered for a day at least, and an hour more at most`() throws {
        var used = Self.tokens()
        let client = try Self.client(1)
        expect(use(1, of: client, &used, now: 0), .begun)
        expect(use(2, of: client, &used, now: Self.hour - 1), .begun)
        expect(use(3, of: client, &used, now: Self.hour), .begun)
        expect(use(2, of: client, &used, now: Self.hour - 1 + Self.day - 1), .used)
        expect(use(1, of: client, &used, now: Self.day + Self.hour - 1), .used)
        // The third is of the next hour.
        expect(use(1, of: client, &used, now: Self.day + Self.hour), .begun)
        expect(use(3, of: client, &used, now: Self.day + Self.hour), .used)
        expect(use(3, of: client, &used, now: Self.day + 2 * Self.hour), .begun)
    }

    // MARK: Bounds

    /// It was done under the lock of all event loops, for as many tokens as had grown old.
    @Test func `one call forgets one hour at most, and nothing that is old counts`() throws {
        var used = Self.tokens()
        let client = try Self.client(1)
        for hour in 0..<24 {
            for number in 0..<100 {
                expect(
                    use(100 * hour + number, of: client, &used, now: Int64(hour) * Self.hour),
                    .begun
                )
            }
        }
        #expect(used.spellCount == 24 && used.count == 2_400)
        let later = 3 * Self.day
        for left in (1..<24).reversed() {
            // It is not freed yet, and good again all the same.
            expect(used.begin(Self.token(2_399), of: client, now: later), .begun)
            used.end(Self.token(2_399), of: client, isSpent: false, now: later)
            #expect(used.spellCount == left && used.count == 100 * left)
        }
    }

    @Test func `the memory is as large as the rate of calls lets it become, and has a name`() {
        expectEqual(UsedTokens.Limits(callsPerSecond: 1, hosts: 3).tokensMax, 270_000)
        expectEqual(UsedTokens.Limits(callsPerSecond: 50, hosts: 3).tokensMax, 13_500_000)
        expectEqual(UsedTokens.Limits(callsPerSecond: .max, hosts: 3).tokensMax, .max)
    }

    @Test func `where no token more can be remembered, none is taken`() throws {
        var used = Self.tokens(3)
        for number in 1...3 {
            expect(use(number, of: try Self.client(number), &used), .begun)
        }
        expect(use(4, of: try Self.client(4), &used), .full)
        expect(use(1, of: try Self.client(1), &used), .used)
        used.raise(tokensMax: 4)
        expect(used.begin(Self.token(4), of: try Self.client(4), now: 0), .begun)
        // The one that is under way needs its place.
        expect(used.begin(Self.token(5), of: try Self.client(5), now: 0), .full)
        // A reload that lowers the rate takes nothing back.
        used.raise(tokensMax: 1)
        used.end(Self.token(4), of: try Self.client(4), isSpent: false, now: 0)
        expect(used.begin(Self.token(5), of: try Self.client(5), now: 0), .begun)
    }

    @Test func `tokens that Apple does not take need no room`() throws {
        var used = Self.tokens(2)
        expect(use(0, of: try Self.client(1), &used), .begun)
        for number in 1...1_000 {
            expect(used.begin(Self.token(number), of: try Self.client(1), now: 0), .begun)
            used.end(Self.token(number), of: try Self.client(1), isSpent: false, now: 0)
        }
        expect(use(0, of: try Self.client(1), &used), .used)
        expectEqual(used.count, 1)
    }

    // MARK: At once

    /// A client that sends many tokens of no use would fill the line of calls to Apple.
    @Test func `Apple is asked about four tokens of a key at once`() throws {
        var used = Self.tokens()
        for number in 1...4 {
            expect(used.begin(Self.token(number), of: try Self.client(1), now: 0), .begun)
        }
        expect(used.begin(Self.token(5), of: try Self.client(1), now: 0), .crowded)
        expect(used.begin(Self.token(6), of: try Self.client(2), now: 0), .begun)
        used.end(Self.token(2), of: try Self.client(1), isSpent: false, now: 0)
        expect(used.begin(Self.token(5), of: try Self.client(1), now: 0), .begun)
        for number in [1, 3, 4, 5] {
            used.end(Self.token(number), of: try Self.client(1), isSpent: true, now: 0)
        }
        expect(used.begin(Self.token(7), of: try Self.client(1), now: 0), .begun)
    }

    /// Keys are many where one device enrols often, or many devices help.
    @Test(arguments: [
        (["198.51.100.7"], "198.51.100.8"),
        (["2001:db8:0:1::1", "2001:db8:0:1:ffff::2"], "2001:db8:0:2::1"),
    ])
    func `Apple is asked about sixteen tokens of an address at once, whatever keys it has`(
        own: [String],
        other: String
    ) throws {
        var used = Self.tokens()
        func client(_ number: Int) throws -> TokenClient {
            try Self.client(number, at: own[number % own.count])
        }
        for number in 0..<16 {
            expect(used.begin(Self.token(number), of: try client(number), now: 0), .begun)
        }
        expect(used.begin(Self.token(16), of: try client(16), now: 0), .crowded)
        let elsewhere = try Self.client(16, at: other)
        expect(used.begin(Self.token(17), of: elsewhere, now: 0), .begun)
        expect(used.begin(Self.token(18), of: try Self.client(18), now: 0), .begun)
        // An operator's call is nobody's.
        expect(used.begin(Self.token(19), of: nil, now: 0), .begun)
        used.end(Self.token(3), of: try client(3), isSpent: true, now: 0)
        expect(used.begin(Self.token(16), of: try client(16), now: 0), .begun)
        expect(used.begin(Self.token(20), of: try client(20), now: 0), .crowded)
    }

    // MARK: One process after the other

    private func next(_ used: UsedTokens, now: Int64) throws -> UsedTokens {
        var out = ByteWriter()
        used.write(to: &out, now: now)
        var state = ByteReader(out.bytes)
        var next = Self.tokens()
        try next.take(from: &state, now: now)
        try state.end()
        return next
    }

    @Test func `what was used, or is under way, is used in the next process, for its time`() throws
    {
        var used = Self.tokens()
        expect(use(1, of: try Self.client(1), &used, now: 0), .begun)
        expect(use(2, of: nil, &used, now: 2 * Self.hour), .begun)
        expect(used.begin(Self.token(3), of: try Self.client(1), now: 3 * Self.hour), .begun)
        var after = try next(try next(used, now: 3 * Self.hour), now: 3 * Self.hour)
        for number in 1...3 {
            expect(use(number, of: try Self.client(2), &after, now: 3 * Self.hour), .used)
        }
        expectEqual(after.count, 3)
        expect(use(4, of: try Self.client(1), &after, now: 3 * Self.hour), .begun)
        expect(use(1, of: nil, &after, now: Self.day + Self.hour), .begun)
        expect(use(2, of: nil, &after, now: Self.day + 2 * Self.hour), .used)
    }

    @Test func `the process before claims tokens, each once, and gives back what Apple refused`()
        throws
    {
        var after = Self.tokens(3)
        expect(after.claim(Self.token(1), now: 0), .begun)
        expect(after.claim(Self.token(1), now: 0), .used)
        expect(use(1, of: nil, &after), .used)
        after.release(Self.token(1))
        after.release(Self.token(1))
        expectEqual(after.count, 0)
        expect(use(1, of: nil, &after), .begun)
        expect(after.begin(Self.token(2), of: nil, now: 0), .begun)
        expect(after.claim(Self.token(2), now: 0), .used)
        expect(after.claim(Self.token(3), now: 0), .begun)
        expect(after.claim(Self.token(4), now: 0), .full)
    }

    @Test func `a state that is cut or changed is refused or harmless`() throws {
        var used = Self.tokens()
        for number in 0..<20 { _ = use(number, of: nil, &used, now: Int64(number) * Self.hour / 4) }
        var out = ByteWriter()
        used.write(to: &out, now: 5 * Self.hour)
        let state = out.bytes
        func read(_ bytes: [UInt8]) throws(ByteReader.Fault) {
            var bytes = ByteReader(bytes)
            var next = Self.tokens()
            try next.take(from: &bytes, now: 5 * Self.hour)
            try bytes.end()
            _ = next.claim(Self.token(1), now: .max)
        }
        for count in state.indices {
            #expect(throws: ByteReader.Fault.self) { try read(Array(state.prefix(count))) }
        }
        for index in state.indices {
            for bit in 0..<8 {
                var changed = state
                changed[index] ^= 1 << bit
                try? read(changed)
            }
        }
    }
}
