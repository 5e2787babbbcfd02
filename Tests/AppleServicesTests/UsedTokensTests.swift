import AppAttest
import Cryptography
import Testing

@testable import AppleServices

@Suite struct UsedTokensTests {
    private static func token(_ number: Int) -> SHA256Digest {
        SHA256.digest(of: Array("token \(number)".utf8))
    }

    private static func key(_ number: Int) throws -> KeyID {
        try #require(KeyID(bytes: SHA256.digest(of: Array("key \(number)".utf8)).octets))
    }

    private static func tokens(_ max: Int = 100, perKey: Int = 100, lifetime: Int64 = 60)
        -> UsedTokens
    {
        var limits = UsedTokens.Limits()
        limits.tokensMax = max
        limits.perKeyMax = perKey
        limits.lifetime = lifetime
        return UsedTokens(limits)
    }

    /// A macro can't call what changes a value.
    private func expect(
        _ beginning: UsedTokens.Beginning,
        _ isNew: Bool,
        _ place: SourceLocation = #_sourceLocation
    ) {
        #expect(beginning == (isNew ? .begun : .used), sourceLocation: place)
    }

    /// A client that sends many tokens of no use would fill the line of calls to Apple.
    @Test func `Apple is asked about four tokens of a key at once`() throws {
        var used = Self.tokens()
        for number in 1...4 {
            expect(used.begin(Self.token(number), of: try Self.key(1), now: 0), true)
        }
        let fifth = used.begin(Self.token(5), of: try Self.key(1), now: 0)
        #expect(fifth == .crowded)
        expect(used.begin(Self.token(6), of: try Self.key(2), now: 0), true)
        used.end(Self.token(2), of: try Self.key(1), isSpent: false, now: 0)
        expect(used.begin(Self.token(5), of: try Self.key(1), now: 0), true)
        for number in [1, 3, 4, 5] {
            used.end(Self.token(number), of: try Self.key(1), isSpent: true, now: 0)
        }
        expect(used.begin(Self.token(7), of: try Self.key(1), now: 0), true)
    }

    @Test func `a token that Apple took is good once`() throws {
        var used = Self.tokens()
        expect(used.begin(Self.token(1), of: try Self.key(1), now: 0), true)
        used.end(Self.token(1), of: try Self.key(1), isSpent: true, now: 0)
        expect(used.begin(Self.token(1), of: try Self.key(1), now: 1), false)
        expect(used.begin(Self.token(2), of: try Self.key(1), now: 1), true)
    }

    @Test func `a token that is being asked about is not good beside that`() throws {
        var used = Self.tokens()
        expect(used.begin(Self.token(1), of: try Self.key(1), now: 0), true)
        expect(used.begin(Self.token(1), of: try Self.key(1), now: 0), false)
    }

    @Test func `a token about which Apple told nothing may come again`() throws {
        var used = Self.tokens()
        expect(used.begin(Self.token(1), of: try Self.key(1), now: 0), true)
        used.end(Self.token(1), of: try Self.key(1), isSpent: false, now: 0)
        expect(used.begin(Self.token(1), of: try Self.key(1), now: 1), true)
        #expect(used.count == 0)
    }

    @Test func `tokens are remembered for their time`() throws {
        var used = Self.tokens(lifetime: 60)
        for number in 1...3 {
            expect(used.begin(Self.token(number), of: try Self.key(1), now: Int64(number)), true)
            used.end(Self.token(number), of: try Self.key(1), isSpent: true, now: Int64(number))
        }
        expect(used.begin(Self.token(2), of: try Self.key(1), now: 60), false)
        #expect(used.count == 3)
        expect(used.begin(Self.token(1), of: try Self.key(1), now: 61), true)
        #expect(used.count == 2)
    }

    @Test func `a key over its share forgets its own oldest, and nobody else's`() throws {
        var used = Self.tokens(perKey: 2)
        expect(used.begin(Self.token(0), of: try Self.key(0), now: 0), true)
        used.end(Self.token(0), of: try Self.key(0), isSpent: true, now: 0)
        for number in 1...3 {
            expect(used.begin(Self.token(number), of: try Self.key(1), now: 0), true)
            used.end(Self.token(number), of: try Self.key(1), isSpent: true, now: 0)
        }
        #expect(used.count == 3)
        for number in [0, 2, 3] {
            expect(used.begin(Self.token(number), of: try Self.key(1), now: 0), false)
        }
        expect(used.begin(Self.token(1), of: try Self.key(1), now: 0), true)
    }

    @Test func `a full memory forgets the oldest of all`() throws {
        var used = Self.tokens(4)
        for number in 1...6 {
            expect(used.begin(Self.token(number), of: try Self.key(number), now: 0), true)
            used.end(Self.token(number), of: try Self.key(number), isSpent: true, now: 0)
        }
        #expect(used.count == 4)
        for number in 3...6 {
            expect(used.begin(Self.token(number), of: try Self.key(number), now: 0), false)
        }
    }

    @Test func `tokens that Apple does not take push nobody's out`() throws {
        var used = Self.tokens(2, perKey: 1)
        expect(used.begin(Self.token(0), of: try Self.key(1), now: 0), true)
        used.end(Self.token(0), of: try Self.key(1), isSpent: true, now: 0)
        for number in 1...100 {
            expect(used.begin(Self.token(number), of: try Self.key(1), now: 0), true)
            used.end(Self.token(number), of: try Self.key(1), isSpent: false, now: 0)
        }
        expect(used.begin(Self.token(0), of: try Self.key(1), now: 0), false)
    }

    @Test func `a key that uses tokens for ever holds no more memory than its share`() throws {
        var used = Self.tokens(1_000, perKey: 2)
        for number in 0..<10_000 {
            expect(used.begin(Self.token(number), of: try Self.key(1), now: 0), true)
            used.end(Self.token(number), of: try Self.key(1), isSpent: true, now: 0)
        }
        #expect(used.count == 2 && used.entries <= 2 * 2 + 65)
    }
}
