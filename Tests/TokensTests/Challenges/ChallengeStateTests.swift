import Encodings
import Expectations
import Testing
import Tokens

/// What goes from one process to the next.
@Suite struct ChallengeStateTests {
    private static let enrolmentSecret = [UInt8](repeating: 3, count: 32)

    private func first(capacity: Int = 1_024) -> ChallengeIssuer {
        ChallengeIssuer(capacity: capacity, secrets: .init(enrolment: Self.enrolmentSecret))
    }

    private func next(_ issuer: ChallengeIssuer, capacity: Int = 1_024) throws -> ChallengeIssuer {
        try ChallengeIssuer(
            capacity: capacity,
            enrolmentSecret: Self.enrolmentSecret,
            goingOnFrom: issuer.state
        )
    }

    private func find(
        _ issuer: ChallengeIssuer,
        _ text: [UInt8],
        _ purpose: ChallengePurpose = .assertion,
        now: Int64
    ) -> ChallengeSerial? {
        guard case .valid(let serial) = issuer.examine(text.span, purpose: purpose, now: now)
        else { return nil }
        return serial
    }

    @Test(arguments: ChallengePurpose.allCases)
    func `what was spent is spent behind a hand-over, and all else is good once`(
        _ purpose: ChallengePurpose
    ) throws {
        let before = first()
        let texts = (0..<2_000).map { before.issue(purpose, now: 1_000 + Int64($0 / 20)) }
        for (index, text) in texts.enumerated() where index % 3 == 0 {
            let serial = try #require(find(before, text, purpose, now: 1_100))
            expectEqual(before.spend(serial), .spent)
        }
        let after = try next(try next(before))
        for (index, text) in texts.enumerated() {
            let examined = after.examine(text.span, purpose: purpose, now: 1_100)
            guard index % 3 > 0 else {
                expectEqual(examined, .spent)
                continue
            }
            let serial = try #require(find(after, text, purpose, now: 1_100))
            expectEqual(after.spend(serial), .spent)
            expectEqual(after.spend(serial), .spentBefore)
        }
        expectEqual(after.issued(purpose), 2_000)
        // Numbers go on, so that a new challenge is no old one.
        let fresh = after.issue(purpose, now: 1_100)
        #expect(find(after, fresh, purpose, now: 1_100) != nil)
        #expect(!texts.contains(fresh))
    }

    @Test func `a period that was closed stays closed`() throws {
        let before = first()
        let old = before.issue(.assertion, now: 1_000)
        for now in stride(from: Int64(1_000), through: 3_000, by: 60) {
            _ = before.issue(.assertion, now: now)
        }
        let after = try next(before)
        // The clock has stepped back.
        expectEqual(after.examine(old.span, purpose: .assertion, now: 1_000), .expired)
    }

    @Test func `tried and spent challenges of other starts are remembered`() throws {
        let earlier = first()
        let texts = (0..<10).map { _ in earlier.issue(.enrolment, now: 1_000) }
        let before = first()
        for text in texts {
            let serial = try #require(find(before, text, .enrolment, now: 1_000))
            #expect(before.isFirstTry(of: serial))
            expectEqual(before.spend(serial), .spent)
        }
        let after = try next(before)
        for text in texts {
            expectEqual(after.examine(text.span, purpose: .enrolment, now: 1_001), .spent)
        }
    }

    @Test func `with less room, what was spent is still spent, and nothing more can be`() throws {
        let before = first()
        let texts = (0..<448 * 4).map { _ in before.issue(.assertion, now: 0) }
        for text in texts {
            _ = before.spend(try #require(find(before, text, now: 0)))
        }
        let after = try next(before, capacity: 2)
        for text in texts {
            expectEqual(after.examine(text.span, purpose: .assertion, now: 1), .spent)
        }
        let more = (0..<448).map { _ in after.issue(.assertion, now: 1) }
        let last = try #require(find(after, more[447], now: 1))
        expectEqual(after.spend(last), .noRoom)
    }

    @Test func `a state that is cut or has more is refused`() throws {
        let before = first()
        let text = before.issue(.assertion, now: 0)
        _ = before.spend(try #require(find(before, text, now: 0)))
        let state = before.state
        for count in 0..<state.count {
            #expect(throws: ByteReader.Fault.self) {
                try ChallengeIssuer(goingOnFrom: Array(state.prefix(count)))
            }
        }
        #expect(throws: ByteReader.Fault.self) {
            try ChallengeIssuer(goingOnFrom: state + [0])
        }
    }

    /// Any bytes: refused or taken, never a trap.
    @Test func `a state that was changed traps nothing`() throws {
        let before = first()
        for index in 0..<600 {
            let text = before.issue(.assertion, now: Int64(index))
            _ = before.spend(try #require(find(before, text, now: Int64(index))))
        }
        let state = before.state
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            var changed = state
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<changed.count, using: &random)
                changed[place] = [0, 1, 0x7f, 0x80, 0xff].randomElement(using: &random) ?? 0
            }
            guard let issuer = try? ChallengeIssuer(goingOnFrom: changed) else { continue }
            for now in [Int64(0), 600, .max] {
                let text = issuer.issue(.assertion, now: now)
                if let serial = find(issuer, text, now: now) { _ = issuer.spend(serial) }
            }
            _ = issuer.issued(.assertion)
        }
    }
}
