import Expectations
import Testing
import Tokens

/// Gateways that share secrets.
@Suite struct SharedSecretTests {
    private static let now: Int64 = 1_800_000_000

    private static func secret(_ number: Int64, from: Int64, until: Int64 = .max) -> SharedSecret {
        SharedSecret(
            number: number,
            bytes: Array(repeating: UInt8(number), count: 32),
            usedFrom: from,
            goodUntil: until
        )
    }

    private static let old = secret(1, from: now - 86_400, until: now + 3_660)
    private static let new = secret(2, from: now + 60)

    private func examine(
        _ text: [UInt8],
        _ issuer: ChallengeIssuer,
        _ purpose: ChallengePurpose = .assertion,
        at now: Int64 = now
    ) -> ChallengeIssuer.Examination {
        issuer.examine(text.span, purpose: purpose, now: now)
    }

    private func isValid(_ examination: ChallengeIssuer.Examination) -> Bool {
        if case .valid = examination { true } else { false }
    }

    @Test(arguments: [ChallengePurpose.assertion, .enrolment])
    func `a challenge of one gateway is good at another, for its purpose`(
        purpose: ChallengePurpose
    ) {
        let (one, other) = (
            ChallengeIssuer(secrets: .init(shared: [Self.old])),
            ChallengeIssuer(secrets: .init(shared: [Self.old]))
        )
        let text = one.issue(purpose, now: Self.now)
        #expect(isValid(examine(text, other, purpose)))
        #expect(isValid(examine(text, one, purpose)))
        let wrong: ChallengePurpose = purpose == .assertion ? .enrolment : .assertion
        expectEqual(examine(text, other, wrong), .unknown)
        // What is made up looks like one of another fleet, unless it is not even of our form.
        let foreign = ChallengeIssuer().issue(purpose, now: Self.now)
        expectEqual(examine(foreign, other, purpose), .foreign)
        expectEqual(examine(foreign, other, wrong), .unknown)
        expectEqual(examine(Array(foreign.dropLast()), other, purpose), .unknown)
        expectEqual(examine(Array("AQEA".utf8), other, purpose), .unknown)
        // One with a secret of its own is no part of the fleet.
        expectEqual(examine(text, ChallengeIssuer(), purpose), .unknown)
    }

    @Test func `the next secret is used from its time on, and the last one counts until its own`() {
        let gateway = ChallengeIssuer(secrets: .init(shared: [Self.old, Self.new]))
        let before = ChallengeIssuer(secrets: .init(shared: [Self.old]))
        let early = gateway.issue(.assertion, now: Self.now)
        #expect(isValid(examine(early, before)))
        let late = gateway.issue(.assertion, now: Self.now + 60)
        expectEqual(examine(late, before, at: Self.now + 60), .foreign)
        #expect(isValid(examine(late, gateway, at: Self.now + 60)))
        // A gateway that has not read it yet reads it in a moment.
        before.take([Self.old, Self.new])
        #expect(isValid(examine(late, before, at: Self.now + 60)))
        // Long-lived challenges of the last one end with it.
        let patient = ChallengeIssuer(
            lifetimes: ChallengeIssuer.Lifetimes(assertion: 86_400),
            secrets: .init(shared: [Self.old, Self.new])
        )
        let text = patient.issue(.assertion, now: Self.now)
        #expect(isValid(examine(text, patient, at: Self.now + 3_659)))
        expectEqual(examine(text, patient, at: Self.now + 3_660), .foreign)
    }

    @Test func `a gateway whose clock is behind all secrets uses the oldest, and knows all`() {
        let slow = ChallengeIssuer(secrets: .init(shared: [Self.old, Self.new]))
        let right = ChallengeIssuer(secrets: .init(shared: [Self.old]))
        let text = slow.issue(.assertion, now: Self.now - 200_000)
        // It is good at others as far as its own expiry goes.
        expectEqual(examine(text, right), .expired)
        let next = ChallengeIssuer(secrets: .init(shared: [Self.new])).issue(
            .assertion,
            now: Self.now + 60
        )
        #expect(isValid(examine(next, slow, at: Self.now)))
    }

    @Test func `what was spent here is refused here, whoever issued it`() throws {
        let (one, other) = (
            ChallengeIssuer(secrets: .init(shared: [Self.old])),
            ChallengeIssuer(secrets: .init(shared: [Self.old]))
        )
        for purpose in [ChallengePurpose.assertion, .enrolment] {
            let text = one.issue(purpose, now: Self.now)
            guard case .valid(let serial) = examine(text, other, purpose) else {
                Issue.record("no challenge")
                return
            }
            expectEqual(other.spend(serial), .spent)
            expectEqual(other.spend(serial), .spentBefore)
            expectEqual(examine(text, other, purpose), .spent)
            other.takeBack(serial)
            #expect(isValid(examine(text, other, purpose)))
        }
    }

    @Test func `the two purposes have serial numbers of their own`() {
        let (one, other) = (
            ChallengeIssuer(secrets: .init(shared: [Self.old])),
            ChallengeIssuer(secrets: .init(shared: [Self.old]))
        )
        let texts = [ChallengePurpose.assertion, .enrolment].map { one.issue($0, now: Self.now) }
        if case .valid(let serial) = examine(texts[0], other) { _ = other.spend(serial) }
        #expect(isValid(examine(texts[1], other, .enrolment)))
    }

    @Test func `without new secrets those that are known go on`() {
        let gateway = ChallengeIssuer(secrets: .init(shared: [Self.old]))
        gateway.take([])
        #expect(isValid(examine(gateway.issue(.assertion, now: Self.now), gateway)))
        let alone = ChallengeIssuer()
        let text = alone.issue(.assertion, now: Self.now)
        alone.take([Self.old])
        #expect(isValid(examine(text, alone)))
    }
}
