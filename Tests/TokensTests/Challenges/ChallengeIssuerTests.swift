import Expectations
import Testing
import Tokens

@Suite struct ChallengeIssuerTests {
    private static let secret = [UInt8](repeating: 7, count: 32)

    private func issuer(
        capacity: Int = 1_024,
        enrolment: Int64 = 3_600,
        assertion: Int64 = 300,
        epoch: UInt64 = 1,
        enrolmentSecret: [UInt8]? = nil
    ) -> ChallengeIssuer {
        ChallengeIssuer(
            lifetimes: ChallengeIssuer.Lifetimes(enrolment: enrolment, assertion: assertion),
            capacity: capacity,
            secrets: .init(own: Self.secret, enrolment: enrolmentSecret),
            epoch: epoch
        )
    }

    private func serial(_ examination: ChallengeIssuer.Examination) throws -> ChallengeSerial {
        guard case .valid(let serial) = examination else {
            Issue.record("not valid: \(examination)")
            throw NotValid()
        }
        return serial
    }

    private struct NotValid: Error {}

    @Test func `a fresh challenge is 56 characters of base64url and valid`() throws {
        let issuer = issuer()
        let text = issuer.issue(.assertion, now: 1_000)
        expectEqual(text.count, 56)
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        #expect(text.allSatisfy(alphabet.contains))
        _ = try serial(issuer.examine(text: text, purpose: .assertion, now: 1_000))
        let read = UnverifiedChallenge(text: text.span)
        let parts = try #require(read)
        expectEqual(parts.purpose, .assertion)
        expectEqual(parts.serial, 0)
        expectEqual(parts.epoch, 1)
        expectEqual(parts.expiry, 1_300)
    }

    @Test func `a challenge is spent once`() throws {
        let issuer = issuer()
        let text = issuer.issue(.assertion, now: 0)
        let serial = try serial(issuer.examine(text: text, purpose: .assertion, now: 0))
        #expect(!issuer.isSpent(serial))
        expectEqual(issuer.spend(serial), .spent)
        expectEqual(issuer.spend(serial), .spentBefore)
        #expect(issuer.isSpent(serial))
        expectEqual(issuer.examine(text: text, purpose: .assertion, now: 0), .spent)
    }

    // MARK: Restarts

    @Test func `an enrolment challenge outlasts a start where its secret does`() throws {
        let secret = [UInt8](repeating: 9, count: 32)
        let before = issuer(enrolmentSecret: secret)
        let texts = (0..<3).map { _ in before.issue(.enrolment, now: 0) }
        let signed = before.issue(.assertion, now: 0)
        let after = issuer(epoch: 2, enrolmentSecret: secret)
        // The new start has issued the same serial numbers, and spends them.
        for _ in 0..<3 {
            let own = after.issue(.enrolment, now: 0)
            let serial = try serial(after.examine(text: own, purpose: .enrolment, now: 0))
            expectEqual(after.spend(serial), .spent)
        }
        for text in texts {
            let serial = try serial(after.examine(text: text, purpose: .enrolment, now: 3_599))
            expectEqual(after.spend(serial), .spent)
            expectEqual(after.spend(serial), .spentBefore)
            #expect(after.isSpent(serial))
            expectEqual(after.examine(text: text, purpose: .enrolment, now: 3_599), .spent)
            expectEqual(after.examine(text: text, purpose: .enrolment, now: 3_600), .expired)
        }
        expectEqual(after.examine(text: signed, purpose: .assertion, now: 0), .unknown)
        expectEqual(after.examine(text: texts[0], purpose: .assertion, now: 0), .unknown)
    }

    @Test func `without a secret of the store an enrolment challenge dies with its start`() {
        let text = issuer().issue(.enrolment, now: 0)
        expectEqual(issuer(epoch: 2).examine(text: text, purpose: .enrolment, now: 0), .unknown)
        let other = issuer(epoch: 2, enrolmentSecret: [UInt8](repeating: 1, count: 32))
        expectEqual(other.examine(text: text, purpose: .enrolment, now: 0), .unknown)
    }

    @Test func `spent challenges of other starts are bounded, and room comes with their expiry`()
        throws
    {
        let secret = [UInt8](repeating: 9, count: 32)
        let before = issuer(enrolmentSecret: secret)
        let after = issuer(capacity: 8, epoch: 2, enrolmentSecret: secret)
        func spend(now: Int64) throws -> ChallengeIssuer.Spending {
            // Neighbours share a block.
            for _ in 1..<448 { _ = before.issue(.enrolment, now: now) }
            let text = before.issue(.enrolment, now: now)
            return after.spend(try serial(after.examine(text: text, purpose: .enrolment, now: now)))
        }
        for _ in 0..<8 { try expectEqual(spend(now: 0), .spent) }
        try expectEqual(spend(now: 0), .noRoom)
        try expectEqual(spend(now: 3_599), .noRoom)
        try expectEqual(spend(now: 3_700), .spent)
    }

    @Test(arguments: [UInt64(1), 2])
    func `a challenge that is taken back is good again, once`(epoch: UInt64) throws {
        let secret = [UInt8](repeating: 9, count: 32)
        let text = issuer(epoch: epoch, enrolmentSecret: secret).issue(.enrolment, now: 0)
        let issuer = issuer(epoch: 1, enrolmentSecret: secret)
        _ = issuer.issue(.enrolment, now: 0)
        let serial = try serial(issuer.examine(text: text, purpose: .enrolment, now: 0))
        expectEqual(issuer.spend(serial), .spent)
        issuer.takeBack(serial)
        #expect(!issuer.isSpent(serial))
        expectEqual(issuer.spend(serial), .spent)
        expectEqual(issuer.spend(serial), .spentBefore)
    }

    @Test func `a challenge has one first try`() throws {
        let issuer = issuer()
        let text = issuer.issue(.enrolment, now: 0)
        let serial = try serial(issuer.examine(text: text, purpose: .enrolment, now: 0))
        #expect(issuer.isFirstTry(of: serial))
        #expect(!issuer.isFirstTry(of: serial))
    }

    @Test func `the first try of a challenge is free also when 65,536 were tried before`() throws {
        let issuer = issuer()
        func isFirstTry() throws -> Bool {
            let text = issuer.issue(.enrolment, now: 0)
            return issuer.isFirstTry(
                of: try serial(issuer.examine(text: text, purpose: .enrolment, now: 0))
            )
        }
        for _ in 0..<65_536 { _ = try isFirstTry() }
        #expect(try isFirstTry())
    }

    @Test func `a challenge is good until the second before its expiry`() throws {
        let issuer = issuer()
        let text = issuer.issue(.assertion, now: 1_000)
        _ = try serial(issuer.examine(text: text, purpose: .assertion, now: 1_299))
        expectEqual(issuer.examine(text: text, purpose: .assertion, now: 1_300), .expired)
        expectEqual(issuer.examine(text: text, purpose: .assertion, now: .max), .expired)
    }

    @Test func `an expired challenge is expired, spent or not`() throws {
        let issuer = issuer()
        let text = issuer.issue(.assertion, now: 1_000)
        let serial = try serial(issuer.examine(text: text, purpose: .assertion, now: 1_000))
        expectEqual(issuer.spend(serial), .spent)
        expectEqual(issuer.examine(text: text, purpose: .assertion, now: 2_000), .expired)
    }

    @Test func `a challenge of one purpose is unknown for the other`() throws {
        let issuer = issuer()
        let text = issuer.issue(.enrolment, now: 0)
        expectEqual(issuer.examine(text: text, purpose: .assertion, now: 0), .unknown)
        let own = try serial(issuer.examine(text: text, purpose: .enrolment, now: 0))
        expectEqual(issuer.spend(own), .spent)
        let other = issuer.issue(.assertion, now: 0)
        _ = try serial(issuer.examine(text: other, purpose: .assertion, now: 0))
    }

    @Test func `the two lifetimes are those that were asked for`() throws {
        let issuer = issuer(enrolment: 60, assertion: 5)
        expectEqual(issuer.lifetime(of: .enrolment), 60)
        expectEqual(issuer.lifetime(of: .assertion), 5)
        let text = issuer.issue(.enrolment, now: 0)
        _ = try serial(issuer.examine(text: text, purpose: .enrolment, now: 59))
    }

    @Test func `every changed character makes a challenge unknown`() throws {
        let issuer = issuer()
        let text = issuer.issue(.assertion, now: 0)
        for index in text.indices {
            var changed = text
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : 0x41
            expectEqual(issuer.examine(text: changed, purpose: .assertion, now: 0), .unknown)
        }
    }

    @Test(arguments: ["", "A", "=", "\u{0}", String(repeating: "A", count: 56), "é"])
    func `what is no challenge is unknown`(text: String) {
        let bytes = Array(text.utf8)
        expectEqual(issuer().examine(text: bytes, purpose: .assertion, now: 0), .unknown)
    }

    @Test func `a challenge cut or lengthened is unknown`() throws {
        let issuer = issuer()
        let text = issuer.issue(.assertion, now: 0)
        for count in 0..<text.count {
            let cut = Array(text.prefix(count))
            expectEqual(issuer.examine(text: cut, purpose: .assertion, now: 0), .unknown)
        }
        for byte in UInt8.min...UInt8.max {
            let long = text + [byte]
            expectEqual(issuer.examine(text: long, purpose: .assertion, now: 0), .unknown)
        }
    }

    @Test func `a challenge has one spelling`() throws {
        let issuer = issuer()
        for _ in 0..<200 {
            let text = issuer.issue(.assertion, now: 0)
            let other = text.map { byte -> UInt8 in
                switch byte {
                case UInt8(ascii: "-"): UInt8(ascii: "+")
                case UInt8(ascii: "_"): UInt8(ascii: "/")
                default: byte
                }
            }
            guard other != text else { continue }
            expectEqual(issuer.examine(text: other, purpose: .assertion, now: 0), .unknown)
        }
    }

    @Test func `after a restart no earlier challenge is good, with the same secret or another`()
        throws
    {
        let text = issuer(epoch: 1).issue(.assertion, now: 0)
        expectEqual(issuer(epoch: 2).examine(text: text, purpose: .assertion, now: 0), .unknown)
        let fresh = ChallengeIssuer()
        expectEqual(fresh.examine(text: text, purpose: .assertion, now: 0), .unknown)
        let theirs = ChallengeIssuer().issue(.assertion, now: 0)
        expectEqual(fresh.examine(text: theirs, purpose: .assertion, now: 0), .unknown)
    }

    @Test(arguments: [Int64.min, -1, 0, 1 << 60, .max])
    func `at any time there is a challenge, and nothing traps`(now: Int64) throws {
        let issuer = issuer()
        let text = issuer.issue(.assertion, now: now)
        let examined = issuer.examine(text: text, purpose: .assertion, now: now)
        expectEqual(issuer.spend(try serial(examined)), .spent)
        for other in [Int64.min, -1, 0, 1 << 60, .max] {
            #expect(issuer.examine(text: text, purpose: .assertion, now: other) != examined)
        }
    }

    @Test func `asking exhausts nothing, and what was spent can't be spent when there is no room`()
        throws
    {
        let issuer = issuer(capacity: 1)
        var serials: [ChallengeSerial] = []
        for number in 0..<100_000 {
            let text = issuer.issue(.assertion, now: 0)
            guard number.isMultiple(of: 50_000) else { continue }
            serials.append(try serial(issuer.examine(text: text, purpose: .assertion, now: 0)))
        }
        expectEqual(issuer.spentBytes, 0)
        expectEqual(issuer.issued(.assertion), 100_000)
        expectEqual(serials.map(issuer.spend), [.spent, .noRoom])
        expectEqual(serials.map(issuer.spend), [.spentBefore, .noRoom])
        // The other purpose has room of its own.
        let other = issuer.issue(.enrolment, now: 0)
        let own = try serial(issuer.examine(text: other, purpose: .enrolment, now: 0))
        expectEqual(issuer.spend(own), .spent)
    }

    @Test func `of loops that race for a challenge exactly one spends it`() async throws {
        let issuer = issuer(capacity: 20_000)
        var serials: [ChallengeSerial] = []
        for _ in 0..<20_000 {
            let text = issuer.issue(.assertion, now: 0)
            serials.append(try serial(issuer.examine(text: text, purpose: .assertion, now: 0)))
        }
        let raced = serials
        let wins = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<4 { group.addTask { raced.count { issuer.spend($0) == .spent } } }
            return await group.reduce(0, +)
        }
        expectEqual(wins, raced.count)
    }

    @Test func `of loops that issue at once none gets another's serial`() async throws {
        let issuer = issuer(capacity: 40_000)
        let texts = await withTaskGroup(of: [[UInt8]].self) { group in
            for _ in 0..<4 {
                group.addTask { (0..<10_000).map { _ in issuer.issue(.assertion, now: 0) } }
            }
            return await group.reduce(into: Set<[UInt8]>()) { $0.formUnion($1) }
        }
        expectEqual(texts.count, 40_000)
    }
}

extension ChallengeIssuer {
    fileprivate func examine(
        text: [UInt8],
        purpose: ChallengePurpose,
        now: Int64
    ) -> Examination {
        examine(text.span, purpose: purpose, now: now)
    }
}
