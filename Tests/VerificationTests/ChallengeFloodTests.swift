import Cryptography
import Expectations
import HTTPWire
import KeyStore
import SoftwareAuthenticator
import Testing
import Tokens
import Verification

/// An hour in which strangers ask for as many challenges as they may, in compressed time.
///
/// Everything is about a four-thousandth of its default: an address may ask for one challenge in
/// three seconds, and 256 spent ones are remembered.
@Suite struct ChallengeFloodTests {
    private static let second: UInt64 = 1_000_000_000
    private static let addresses = 250
    private static let rate = TokenRate(1, perSeconds: 3, burst: 2)
    private static let capacity = 256

    private let table = AddressTable(capacity: 65_536, key: (1, 2))

    /// Asks as the address may: eight challenges in one call, which is charged for them.
    private func ask(_ fixture: EnrolmentFixture, _ entry: AddressEntry, _ document: String) -> Int
    {
        guard entry.takeCall(Self.rate, now: fixture.tick) == nil else { return 0 }
        guard case .challenges(_, let texts, _) = fixture.challenges(document) else { return 0 }
        entry.oweCalls(texts.count - 1, Self.rate, now: fixture.tick)
        return texts.count
    }

    /// Asks for a challenge of the purpose and spends it, as who has signed with it does.
    private func serve(_ fixture: EnrolmentFixture, _ purpose: ChallengePurpose) -> Bool {
        let text = fixture.issuer.issue(purpose, now: fixture.now.seconds)
        let found = fixture.issuer.examine(text.span, purpose: purpose, now: fixture.now.seconds)
        guard case .valid(let serial) = found else { return false }
        return fixture.issuer.spend(serial) == .spent
    }

    @Test func `hundreds of addresses at their limits for an hour leave honest clients served`()
        async throws
    {
        var fixture = try EnrolmentFixture(capacity: Self.capacity)
        let entries = try (0..<Self.addresses).map { number in
            guard case .held(let entry) = table.hold(.v4(UInt32(number)), now: 1, max: nil) else {
                throw Trial.Absent()
            }
            return entry
        }
        let documents = [#"{"purpose":"enrolment","count":8}"#, #"{"count":8}"#]
        var issued = 0
        var unserved = 0
        for second in 0..<3_600 {
            for (number, entry) in entries.enumerated() where number % 8 == second % 8 {
                issued += ask(fixture, entry, documents[number / 8 % 2])
            }
            if !serve(fixture, .assertion) { unserved += 1 }
            if second.isMultiple(of: 10), !serve(fixture, .enrolment) { unserved += 1 }
            fixture.now = fixture.now.advanced(bySeconds: 1)
            fixture.tick += Self.second
        }
        // What the limit allows: a challenge in three seconds each, and the first call's eight.
        #expect(issued > 275_000)
        #expect(issued <= Self.addresses * (3_600 / 3 + 8))
        expectEqual(unserved, 0)
        #expect(fixture.issuer.spentBytes <= ChallengeIssuer.spentBytesMax(capacity: Self.capacity))

        // The whole way, at the end of the hour.
        let key = Trial.device().makeKey()
        let answer = await fixture.enrol(fixture.document(key, challenge: try fixture.challenge()))
        expectEqual(answer.status, 201)
    }

    @Test func `spent challenges of a million take less memory than was said`() throws {
        let issuer = ChallengeIssuer(capacity: 1 << 20)
        var spent = 0
        for _ in 0..<100_000 {
            let text = issuer.issue(.assertion, now: 0)
            guard case .valid(let serial) = issuer.examine(text.span, purpose: .assertion, now: 0)
            else { continue }
            if issuer.spend(serial) == .spent { spent += 1 }
        }
        expectEqual(spent, 100_000)
        // 224 blocks in 64 tables: 4 bits a challenge, where 12,500 bytes would be one.
        #expect(issuer.spentBytes <= 50_000)
    }
}
