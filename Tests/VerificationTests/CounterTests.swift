import AppAttest
import Cryptography
import Expectations
import KeyStore
import RequestBinding
import Rules
import SoftwareAuthenticator
import Testing
import Verification

@Suite struct CounterTests {
    private static func rule(_ counter: CounterRule) -> Rule {
        Trial.rule { $0.counter = counter }
    }

    /// Sends assertions with these counters, in this order, each under a rule.
    private func outcomes(_ sent: [(UInt32, CounterRule)]) throws -> [Verdict.Outcome] {
        var trial = try Trial()
        var key = trial.enrolledKey()
        return try sent.map { counter, rule in
            key.counter = SignCounter(rawValue: counter &- 1)
            return try trial.send(try trial.request(), by: &key, Self.rule(rule)).outcome
        }
    }

    private static let replayed = Verdict.Outcome.refuse(.counterReplayed)

    @Test func `under the strict rule a counter must be the greatest so far`() throws {
        let sent: [UInt32] = [1, 2, 2, 1, 5, 4, 6, .max, .max, 7]
        let found = try outcomes(sent.map { ($0, .strict) })
        let passed = sent.indices.filter { found[$0] == .pass }.map { sent[$0] }
        expectEqual(passed, [1, 2, 5, 6, .max])
        #expect(found.filter { $0 != .pass }.allSatisfy { $0 == Self.replayed })
    }

    @Test func `under a window an unseen counter is admitted once, however late`() throws {
        let sent: [UInt32] = [4, 2, 1, 3, 3, 4, 1, 2, 5]
        let found = try outcomes(sent.map { ($0, .window(64)) })
        let passed = sent.indices.filter { found[$0] == .pass }.map { sent[$0] }
        expectEqual(passed, [4, 2, 1, 3, 5])
    }

    @Test(arguments: [1, 2, 8, 63, 64])
    func `a window reaches as far below the highest as it says and no further`(width: Int) throws {
        let highest: UInt32 = 1_000
        let found = try outcomes([
            (highest, .window(width)), (highest - UInt32(width), .window(width)),
            (highest - UInt32(width) - 1, .window(width)), (highest, .window(width)),
        ])
        expectEqual(found, [.pass, .pass, Self.replayed, Self.replayed])
    }

    @Test func `a jump forgets nothing within the window`() throws {
        let found = try outcomes([
            (10, .window(64)), (74, .window(64)), (10, .window(64)), (11, .window(64)),
            (138, .window(64)), (74, .window(64)), (11, .window(64)), (200, .window(64)),
            (138, .window(64)), (137, .window(64)),
        ])
        expectEqual(
            found,
            [
                .pass, .pass, Self.replayed, .pass, .pass, Self.replayed, Self.replayed, .pass,
                Self.replayed, .pass,
            ]
        )
    }

    @Test func `rules that differ share what a key has used`() throws {
        let found = try outcomes([
            (5, .window(64)), (3, .window(64)), (4, .strict), (4, .window(64)), (4, .window(64)),
            (6, .strict), (6, .window(64)), (2, .window(3)), (2, .window(4)), (7, .strict),
        ])
        expectEqual(
            found,
            [
                .pass, .pass, Self.replayed, .pass, Self.replayed, .pass, Self.replayed,
                Self.replayed, .pass, .pass,
            ]
        )
    }

    @Test func `a replay by a clone of the key is refused for its counter`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var clone = key
        try expectEqual(trial.send(try trial.request(), by: &key).outcome, .pass)
        try expectEqual(trial.send(try trial.request(), by: &clone).outcome, Self.replayed)
        try expectEqual(trial.send(try trial.request(), by: &clone).outcome, .pass)
    }

    @Test func `the counter of one key says nothing about another`() throws {
        var trial = try Trial()
        var one = trial.enrolledKey()
        var other = trial.enrolledKey()
        one.counter = SignCounter(rawValue: 500)
        try expectEqual(trial.send(try trial.request(), by: &one).outcome, .pass)
        try expectEqual(trial.send(try trial.request(), by: &other).outcome, .pass)
    }
}
