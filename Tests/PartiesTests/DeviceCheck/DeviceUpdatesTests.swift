import AppAttest
import Cryptography
import Expectations
import KeyStore
import OutboundCalls
import Rules
import Testing
import Verification

@testable import Parties

/// Changes of bits as transcripts: what Apple replies, and what follows.
@Suite struct DeviceUpdatesTests {
    private typealias Action = DeviceUpdates.Action
    private typealias Outcome = DeviceUpdates.Outcome

    private static func device(_ text: String = "AAAA") throws -> NamedDevice {
        let token = DeviceToken(Array(text.utf8).span)
        return NamedDevice(try #require(token), .production, teamID: nil)
    }

    private static func key(_ number: UInt8) throws -> KeyID {
        try #require(KeyID(bytes: SHA256.digest(of: [number]).array))
    }

    private static func bits(_ bit0: Bool, _ bit1: Bool) -> DeviceBits {
        DeviceBits(bit0: bit0, bit1: bit1)
    }

    private static let setsFirst = DeviceChange(bit0: true, bit1: nil)

    private func expect(
        _ step: (Action, Outcome?),
        _ action: Action,
        _ outcome: Outcome? = nil,
        _ place: SourceLocation = #_sourceLocation
    ) {
        expectEqual(step.0, action, sourceLocation: place)
        expectEqual(step.1, outcome, sourceLocation: place)
    }

    /// It waits or has begun.
    private func expect(_ outcome: Outcome?, _ place: SourceLocation = #_sourceLocation) {
        expectEqual(outcome, nil, sourceLocation: place)
    }

    @Test func `a bit that is not named is read, and written as it was`() throws {
        var updates = DeviceUpdates()
        let (device, key) = (try Self.device(), try Self.key(1))
        expect(updates.asked(Self.setsFirst, of: device, key), .ask(.query, device))
        expect(
            updates.replied(.bits(Self.bits(false, true), month: nil), to: key, random: 0),
            .ask(.update(Self.bits(true, true)), device)
        )
        expect(updates.replied(.done, to: key, random: 0), .none, .kept(Self.bits(true, true)))
        expectEqual(updates.pending, 0)
    }

    @Test func `bits that were never set are both clear`() throws {
        var updates = DeviceUpdates()
        let (device, key) = (try Self.device(), try Self.key(1))
        expect(updates.asked(Self.setsFirst, of: device, key), .ask(.query, device))
        expect(
            updates.replied(.neverSet, to: key, random: 0),
            .ask(.update(Self.bits(true, false)), device)
        )
    }

    @Test func `where both bits are named, nothing is read`() throws {
        var updates = DeviceUpdates()
        let (device, key) = (try Self.device(), try Self.key(1))
        let both = DeviceChange(bit0: false, bit1: true)
        expect(
            updates.asked(both, of: device, key),
            .ask(.update(Self.bits(false, true)), device)
        )
    }

    @Test func `changes of one key come one after the other, those of another beside them`() throws
    {
        var updates = DeviceUpdates()
        let (one, two) = (try Self.device(), try Self.device("BBBB"))
        let (key, other) = (try Self.key(1), try Self.key(2))
        expect(updates.asked(Self.setsFirst, of: one, key), .ask(.query, one))
        expect(updates.asked(DeviceChange(bit0: nil, bit1: true), of: two, key), .none)
        expect(updates.asked(Self.setsFirst, of: one, other), .ask(.query, one))
        expect(
            updates.replied(.neverSet, to: key, random: 0),
            .ask(.update(Self.bits(true, false)), one)
        )
        expect(
            updates.replied(.done, to: key, random: 0),
            .ask(.query, two),
            .kept(Self.bits(true, false))
        )
        // It sees what the first has written.
        expect(
            updates.replied(.bits(Self.bits(true, false), month: nil), to: key, random: 0),
            .ask(.update(Self.bits(true, true)), two)
        )
        expectEqual(updates.pending, 2)
    }

    @Test func `a failure that may pass is tried again, from the reading on, and not for ever`()
        throws
    {
        var updates = DeviceUpdates()
        let (device, key) = (try Self.device(), try Self.key(1))
        expect(updates.asked(Self.setsFirst, of: device, key), .ask(.query, device))
        expect(
            updates.replied(.neverSet, to: key, random: 0),
            .ask(.update(Self.bits(true, false)), device)
        )
        let fault = PartyFault.unanswered(.timeout)
        var pauses: [Duration] = []
        for _ in 1..<DeviceUpdates.triesMax {
            let (action, outcome) = updates.replied(.failed(fault), to: key, random: 0)
            guard case .pause(let pause) = action else {
                Issue.record("no pause but \(action)")
                return
            }
            pauses.append(pause)
            expectEqual(outcome, nil)
            expectEqual(updates.pauseEnded(of: key), .ask(.query, device))
        }
        #expect(pauses == pauses.sorted() && pauses.first != pauses.last)
        expect(updates.replied(.failed(fault), to: key, random: 0), .none, .failed(fault))
        #expect(updates.pending == 0 && updates.pauseEnded(of: key) == .none)
    }

    @Test func `what can't get better ends at once, and the next begins`() throws {
        var updates = DeviceUpdates()
        let (device, key) = (try Self.device(), try Self.key(1))
        expect(updates.asked(Self.setsFirst, of: device, key), .ask(.query, device))
        expect(updates.asked(Self.setsFirst, of: device, key), .none)
        expect(
            updates.replied(.failed(.credentialRefused), to: key, random: 0),
            .ask(.query, device),
            .failed(.credentialRefused)
        )
    }

    @Test(arguments: [(Int?.none, 2), (30, 30), (9_999_999, 300)])
    func `Apple's Retry-After is heeded within bounds`(seconds: Int?, expected: Int) throws {
        var updates = DeviceUpdates()
        let (device, key) = (try Self.device(), try Self.key(1))
        expect(updates.asked(Self.setsFirst, of: device, key), .ask(.query, device))
        let (action, _) = updates.replied(
            .failed(.tooMany(retryAfter: seconds)),
            to: key,
            random: .max
        )
        guard case .pause(let pause) = action else {
            Issue.record("no pause but \(action)")
            return
        }
        #expect(pause <= .seconds(expected) && pause > .zero)
        if seconds != nil { expectEqual(pause, .seconds(expected)) }
    }

    @Test func `a key, and all keys together, have so many that wait`() throws {
        var updates = DeviceUpdates()
        let (device, key) = (try Self.device(), try Self.key(1))
        for _ in 0..<DeviceUpdates.pendingOfKeyMax {
            expect(updates.asked(Self.setsFirst, of: device, key).1)
        }
        expect(updates.asked(Self.setsFirst, of: device, key), .none, .dropped)
        for number in DeviceUpdates.pendingOfKeyMax..<DeviceUpdates.pendingMax {
            let other = try #require(
                KeyID(bytes: SHA256.digest(of: Array("\(number)".utf8)).array)
            )
            expect(updates.asked(Self.setsFirst, of: device, other).1)
        }
        expect(updates.asked(Self.setsFirst, of: device, try Self.key(2)), .none, .dropped)
    }
}
