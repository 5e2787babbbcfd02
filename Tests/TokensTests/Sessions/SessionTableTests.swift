import AppAttest
import Cryptography
import Expectations
import RequestBinding
import SoftwareAuthenticator
import Testing

@testable import Tokens

@Suite struct SessionTableTests {
    @Test func `an id is 44 characters of base64url, and the secret is another one for each`()
        throws
    {
        let opening = Opening()
        let key = Opening.makeKey()
        let (first, second) = (try opening.open(key), try opening.open(key))
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        expectEqual(first.id.count, 44)
        #expect(first.id.allSatisfy(alphabet.contains))
        #expect(first.id != second.id)
        #expect(first.secret != second.secret)
    }

    @Test func `a session is found by its id, and knows its key`() throws {
        let opening = Opening()
        let key = Opening.makeKey()
        let session = try #require(opening.session(try opening.open(key)))
        expectEqual(session.keyID, key.keyID)
    }

    @Test func `a session is good until the second before its expiry`() throws {
        let opening = Opening(lifetime: 600)
        let opened = try opening.open(Opening.makeKey(), now: 1_000)
        #expect(opening.session(opened, now: 1_599) != nil)
        expectEqual(opening.session(opened, now: 1_599)?.isOver(at: 1_600), true)
        guard case .expired = opening.table.find(opened.id.span, now: 1_600) else {
            Issue.record("not expired")
            return
        }
        guard case .expired = opening.table.find(opened.id.span, now: .max) else {
            Issue.record("not expired at the end of time")
            return
        }
    }

    @Test func `an expired session is expired also when nothing of it is kept`() throws {
        let opening = Opening()
        let opened = try opening.open(Opening.makeKey())
        expectEqual(opening.table.count(now: 1_599), 1)
        expectEqual(opening.table.count(now: 1_600), 0)
        guard case .expired = opening.table.find(opened.id.span, now: 1_600) else {
            Issue.record("not expired")
            return
        }
    }

    @Test func `a clock that steps back ends no session and revives none`() throws {
        let opening = Opening()
        let opened = try opening.open(Opening.makeKey(), now: 1_000)
        #expect(opening.session(opened, now: 0) != nil)
        #expect(opening.session(opened, now: .min) != nil)
        let later = try opening.open(Opening.makeKey(), now: 10)
        // The one opened first ends last: those behind it in the list end with it.
        expectEqual(opening.table.count(now: 1_600), 0)
        for gone in [opened, later] {
            guard case .unknown = opening.table.find(gone.id.span, now: 20) else {
                Issue.record("a session that has ended is known again")
                return
            }
        }
    }

    @Test func `a changed id is unknown, wherever it is changed`() throws {
        let opening = Opening()
        let opened = try opening.open(Opening.makeKey())
        for index in opened.id.indices {
            var id = opened.id
            id[index] = id[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            guard case .unknown = opening.table.find(id.span, now: 1_000) else {
                Issue.record("character \(index) may be changed")
                return
            }
        }
        for id in [
            [], Array(opened.id.dropLast()), opened.id + [65], Array(repeating: 65, count: 9_000),
        ] {
            guard case .unknown = opening.table.find(id.span, now: 1_000) else {
                Issue.record("\(id.count) characters are read")
                return
            }
        }
    }

    @Test func `an id of another start is unknown, also when it has expired`() throws {
        let opened = try Opening().open(Opening.makeKey())
        let restarted = SessionTable(SessionTable.Limits())
        for now: Int64 in [1_000, 1_600] {
            guard case .unknown(.foreign) = restarted.find(opened.id.span, now: now) else {
                Issue.record("known at \(now), or taken for one of its own")
                return
            }
        }
    }

    @Test func `a key has four sessions; a fifth ends its oldest and nobody else's`() throws {
        let opening = Opening()
        let (key, other) = (Opening.makeKey(), Opening.makeKey())
        let foreign = try opening.open(other)
        var own = try (0..<4).map { _ in try opening.open(key) }
        #expect(own.allSatisfy { opening.session($0) != nil })
        own.append(try opening.open(key))
        expectEqual(own.map { opening.session($0) != nil }, [false, true, true, true, true])
        for _ in 0..<1_000 { own.append(try opening.open(key)) }
        expectEqual(
            own.suffix(5).map { opening.session($0) != nil },
            [false, true, true, true, true]
        )
        #expect(opening.session(foreign) != nil)
        expectEqual(opening.table.count(now: 1_000), 5)
    }

    @Test func `there are never more sessions than the limit, and the oldest give way`() throws {
        for limit in [1, 2, 50] {
            let opening = Opening(sessionsMax: limit)
            var last: SessionTable.Opened?
            for _ in 0..<limit * 3 {
                last = try opening.open(Opening.makeKey())
                #expect(opening.table.count(now: 1_000) <= limit)
            }
            let newest = try #require(last)
            #expect(opening.session(newest) != nil)
            expectEqual(opening.table.count(now: 1_000), limit)
            expectEqual(opening.table.evicted, UInt64(limit * 2))
        }
    }

    @Test func `the session that was opened first is evicted first, whatever its key`() throws {
        let opening = Opening(sessionsMax: 40)
        var opened = try (0..<40).map { _ in try opening.open(Opening.makeKey()) }
        for number in 1...40 {
            opened.append(try opening.open(Opening.makeKey()))
            let isOpen = opened.map { opening.session($0) != nil }
            expectEqual(isOpen.firstIndex(of: true), number)
            #expect(!isOpen.suffix(40).contains(false))
        }
        expectEqual(opening.table.evicted, 40)
    }

    @Test func `a session that has expired is not counted as evicted, whatever key it is of`()
        throws
    {
        let opening = Opening(sessionsMax: 40)
        for _ in 0..<40 { _ = try opening.open(Opening.makeKey(), now: 1_000) }
        for _ in 0..<40 { _ = try opening.open(Opening.makeKey(), now: 1_600) }
        expectEqual(opening.table.evicted, 0)
        expectEqual(opening.table.count(now: 1_600), 40)
    }

    @Test func `what has expired makes room before anything is evicted`() throws {
        let opening = Opening(sessionsMax: 1)
        _ = try opening.open(Opening.makeKey(), now: 1_000)
        expectEqual(opening.table.count(now: 1_600), 0)
        _ = try opening.open(Opening.makeKey(), now: 1_600)
        expectEqual(opening.table.evicted, 0)
    }

    @Test func `the signature is HMAC-SHA-256 with the secret`() throws {
        let opening = Opening()
        let opened = try opening.open(Opening.makeKey())
        let session = try #require(opening.session(opened))
        let lines = Array("portcullis-request-v1\nGET\n/\n".utf8)
        let secret = opened.secret.bytes
        let expected = HMACSHA256.code(lines.span, key: secret.span)
        expectEqual(session.signature(of: lines.span), expected)
        let (start, rest) = (Array(lines.prefix(5)), Array(lines.dropFirst(5)))
        expectEqual(session.signature(of: start.span, rest.span), expected)
    }
}
