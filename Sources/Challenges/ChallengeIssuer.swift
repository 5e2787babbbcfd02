internal import Cryptography

/// Issues challenges, recognises its own, and spends each once. All lanes share one.
package final class ChallengeIssuer: Sendable {
    /// How long challenges are good, in seconds: 1…2³².
    package struct Lifetimes: Sendable {
        package var enrolment: Int64
        package var assertion: Int64

        package init(enrolment: Int64 = 3_600, assertion: Int64 = 300) {
            self.enrolment = enrolment
            self.assertion = assertion
        }
    }

    /// What a challenge that a client sent turned out to be.
    package enum Examination: Equatable, Sendable {
        /// Ours, in time, and not spent so far.
        case valid(ChallengeSerial)
        /// Not issued here, for another purpose, or before this start.
        case unknown
        case expired
        case spent
    }

    /// The most unexpired challenges of each purpose.
    ///
    /// At the default, 28,000 assertion challenges a second may be issued for ever with a lifetime
    /// of five minutes, and 2,300 enrolment challenges with one of an hour.
    package static let capacityDefault = 1 << 23

    private let key: HMACSHA256.Key
    private let epoch: UInt64
    private let enrolment: SpentRing
    private let assertion: SpentRing

    /// - `capacity`: the most unexpired challenges of each purpose.
    /// - `secret`: the key of the codes. Without one it is drawn here, never leaves memory and dies
    ///   with the process.
    /// - `epoch`: which start this is. Never give the same secret and epoch to two issuers: the
    ///   second would not know what the first has spent.
    package init(
        lifetimes: Lifetimes = Lifetimes(),
        capacity: Int = capacityDefault,
        secret: [UInt8]? = nil,
        epoch: UInt64 = randomEpoch()
    ) {
        key = secret.map { HMACSHA256.Key($0.span) } ?? .random()
        self.epoch = epoch
        enrolment = SpentRing(capacity: capacity, lifetime: lifetimes.enrolment)
        assertion = SpentRing(capacity: capacity, lifetime: lifetimes.assertion)
    }

    /// Eight octets of randomness.
    package static func randomEpoch() -> UInt64 {
        RandomOctets.make(count: 8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// A fresh challenge as text of base64url; `nil` when the capacity is reached.
    ///
    /// - `now`: the wall clock, seconds since 1970.
    package func issue(_ purpose: ChallengePurpose, now: Int64) -> [UInt8]? {
        let ring = ring(of: purpose)
        let (expiry, overflow) = now.addingReportingOverflow(ring.lifetime)
        guard now >= 0, !overflow, let serial = ring.issue(expiry: expiry, now: now) else {
            return nil
        }
        return UnverifiedChallenge.text(
            of: purpose,
            epoch: epoch,
            serial: serial,
            expiry: expiry,
            key: key
        )
    }

    /// Recognises a challenge without spending it.
    ///
    /// Checked in this order: form, code, purpose, epoch; expiry, and whether its place was reused;
    /// whether it was spent.
    ///
    /// - `text`: what the client sent.
    /// - `now`: the wall clock, seconds since 1970.
    package func examine(
        _ text: Span<UInt8>,
        purpose: ChallengePurpose,
        now: Int64
    ) -> Examination {
        guard let challenge = UnverifiedChallenge(text: text), challenge.isAuthentic(under: key),
            challenge.purpose == purpose, challenge.epoch == epoch
        else { return .unknown }
        let ring = ring(of: purpose)
        guard !ring.isOver(challenge.expiry, now: now), !ring.isRetired(challenge.serial) else {
            return .expired
        }
        guard !ring.isSpent(challenge.serial) else { return .spent }
        return .valid(ChallengeSerial(purpose: purpose, number: challenge.serial))
    }

    /// Spends a challenge: true for exactly one of all callers.
    package func spend(_ serial: ChallengeSerial) -> Bool {
        ring(of: serial.purpose).spend(serial.number)
    }

    /// Whether a challenge was spent.
    package func isSpent(_ serial: ChallengeSerial) -> Bool {
        ring(of: serial.purpose).isSpent(serial.number)
    }

    /// Seconds that a challenge of this purpose is good.
    package func lifetime(of purpose: ChallengePurpose) -> Int64 { ring(of: purpose).lifetime }

    /// Challenges of this purpose issued since the start.
    package func issued(_ purpose: ChallengePurpose) -> UInt64 { ring(of: purpose).issued }

    /// Octets that the spent bits of both purposes take now.
    package var bitmapOctets: Int { enrolment.bitmapOctets + assertion.bitmapOctets }

    private func ring(of purpose: ChallengePurpose) -> SpentRing {
        switch purpose {
        case .enrolment: enrolment
        case .assertion: assertion
        }
    }
}
