internal import Cryptography
package import Encodings
internal import Synchronization

/// Issues challenges, recognises its own, and spends each once. All event loops share one.
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

    /// The result of examining a challenge that a client sent.
    package enum Examination: Equatable, Sendable {
        /// Issued here, in time, and not spent so far.
        case valid(ChallengeSerial)
        /// Not issued here, or issued for another purpose. Where the secret dies with the process,
        /// also one that was issued before this start.
        case unknown
        /// In a fleet: it has our form, but none of the known secrets made its code. A gateway with
        /// other secrets has issued it, or it is forged.
        case foreign
        case expired
        case spent
    }

    /// The result of spending a challenge.
    package enum Spending: CaseIterable, Sendable {
        /// The caller has spent it.
        case spent
        /// It was spent before, or its period is closed.
        case spentBefore
        /// Nothing more can be remembered before some of what was spent expires.
        case noRoom
    }

    /// The number of spent challenges that each purpose can remember at least.
    ///
    /// 1,048,576. With a lifetime of five minutes that is 3,495 a second if 447 others are issued
    /// between any two of them, and 1.5 million a second if all issued challenges are spent.
    package static let capacityDefault = 1 << 20

    /// The most blocks for enrolment challenges that were tried, and for those of another start
    /// that were spent. A block has 448 neighbours. So the limit suffices for 29 million challenges
    /// that are issued within one lifetime, and for 65,536 that are far apart.
    package static let rememberedBlocksMax = 65_536

    /// Whether challenges of another start are good.
    private enum Reach {
        /// The secret dies with the process.
        case thisStart
        /// Every start with this secret recognises them.
        case allStarts
        /// All gateways of a store have the secrets, and the store decides which challenges are
        /// spent.
        case fleet
    }

    /// The key of the codes of assertion challenges. Only the successor gets it.
    let secret: [UInt8]
    private let enrolmentKey: HMACSHA256.Key
    private let assertionKey: HMACSHA256.Key
    private let enrolmentReach: Reach
    private let assertionReach: Reach
    /// The secrets of a fleet's gateways; `nil` where this gateway has its own.
    private let shared: Mutex<SharedKeys?>
    let epoch: UInt64
    let enrolment: SpentChallenges
    let assertion: SpentChallenges
    /// Enrolment challenges of other starts that were spent in this one.
    let earlier: RememberedChallenges
    /// Assertion challenges of other gateways that were spent here. The store knows those that were
    /// spent elsewhere.
    let elsewhere: RememberedChallenges
    /// Enrolment challenges that were tried.
    let tried = RememberedChallenges(capacity: rememberedBlocksMax)

    /// The keys of the codes of challenges.
    package struct Secrets {
        /// Of this start. Without one, the issuer draws a key. That key goes from this process's
        /// memory to that of its successor alone, and dies with them.
        fileprivate var own: [UInt8]?
        /// Of enrolment challenges, where it outlasts the process. Then enrolment challenges of
        /// other starts are good too.
        fileprivate var enrolment: [UInt8]?
        /// Of all gateways of a store, which decides what is spent. They replace the others. Later
        /// ones come by ``take(_:)``.
        fileprivate var shared: [SharedSecret]

        package init(
            own: [UInt8]? = nil,
            enrolment: [UInt8]? = nil,
            shared: [SharedSecret] = []
        ) {
            (self.own, self.enrolment, self.shared) = (own, enrolment, shared)
        }
    }

    /// - `capacity`: how many spent challenges of each purpose are remembered at the least.
    /// - `epoch`: the number of this start. Never give the same secret and epoch to two issuers:
    ///   the second would not know what the first has spent.
    package init(
        lifetimes: Lifetimes = Lifetimes(),
        capacity: Int = capacityDefault,
        secrets: Secrets = Secrets(),
        epoch: UInt64 = RandomBytes.word()
    ) {
        let secret = secrets.own ?? RandomBytes.make(count: 32)
        self.secret = secret
        let key = HMACSHA256.Key(secret.span)
        assertionKey = key
        enrolmentKey = secrets.enrolment.map { HMACSHA256.Key($0.span) } ?? key
        let sharedKeys = SharedKeys(secrets.shared)
        shared = Mutex(sharedKeys)
        let ownReach = secrets.enrolment == nil ? Reach.thisStart : .allStarts
        enrolmentReach = sharedKeys == nil ? ownReach : .fleet
        assertionReach = sharedKeys == nil ? .thisStart : .fleet
        self.epoch = epoch
        earlier = RememberedChallenges(capacity: min(capacity, Self.rememberedBlocksMax))
        elsewhere = RememberedChallenges(capacity: min(capacity, Self.rememberedBlocksMax))
        enrolment = SpentChallenges(capacity: capacity, lifetime: lifetimes.enrolment)
        assertion = SpentChallenges(capacity: capacity, lifetime: lifetimes.assertion)
    }

    /// A fresh challenge as text of base64url. It never fails: the issuer keeps nothing of it.
    ///
    /// - `now`: the wall clock, seconds since 1970; taken as 0…2⁶⁰.
    package func issue(_ purpose: ChallengePurpose, now: Int64) -> [UInt8] {
        let now = Self.bounded(now)
        let set = set(of: purpose)
        return UnverifiedChallenge.text(
            of: purpose,
            epoch: epoch,
            serial: set.issue(now: now),
            expiry: now + set.lifetime,
            key: signingKey(of: purpose, now: now)
        )
    }

    /// Recognises a challenge without spending it.
    ///
    /// Checked in this order: form, code, purpose, start; expiry, and whether its period is closed;
    /// whether it was spent. This start does not know what another start has spent.
    ///
    /// - `text`: what the client sent.
    /// - `now`: the wall clock, seconds since 1970.
    package func examine(
        _ text: Span<UInt8>,
        purpose: ChallengePurpose,
        now: Int64
    ) -> Examination {
        let now = Self.bounded(now)
        guard let challenge = UnverifiedChallenge(text: text) else { return .unknown }
        guard isAuthentic(challenge, as: purpose, at: now) else {
            let isForeign = challenge.purpose == purpose && reach(of: purpose) == .fleet
            return isForeign ? .foreign : .unknown
        }
        guard challenge.purpose == purpose,
            challenge.epoch == epoch || reach(of: purpose) != .thisStart
        else { return .unknown }
        let set = set(of: purpose)
        guard !set.isOver(challenge.expiry, now: now) else { return .expired }
        let serial = ChallengeSerial(
            purpose: purpose,
            epoch: challenge.epoch,
            number: challenge.serial,
            expiry: challenge.expiry
        )
        if purpose == .enrolment {
            tried.forgetExpired(now: now)
            earlier.forgetExpired(now: now)
        }
        guard challenge.epoch == epoch else {
            let others = others(of: purpose)
            if purpose == .assertion { others.forgetExpired(now: now) }
            return others.contains(serial) ? .spent : .valid(serial)
        }
        set.makeRoom(now: now)
        guard !set.isClosed(challenge.serial) else { return .expired }
        return set.isSpent(challenge.serial) ? .spent : .valid(serial)
    }

    private func isAuthentic(
        _ challenge: UnverifiedChallenge,
        as purpose: ChallengePurpose,
        at now: Int64
    ) -> Bool {
        guard case .fleet = reach(of: purpose), let keys = shared.withLock({ $0 }) else {
            return challenge.isAuthentic(under: key(of: purpose))
        }
        return keys.recognises(challenge, at: now)
    }

    /// From now on these are the secrets of all gateways. An empty list changes nothing.
    package func take(_ secrets: [SharedSecret]) {
        guard case .fleet = assertionReach, let keys = SharedKeys(secrets) else { return }
        shared.withLock { $0 = keys }
    }

    /// Spends a challenge: `spent` for exactly one of all callers.
    ///
    /// Call it after a signature over the challenge was verified: it takes memory.
    package func spend(_ serial: ChallengeSerial) -> Spending {
        guard serial.epoch == epoch else {
            switch others(of: serial.purpose).add(serial) {
            case .added: return .spent
            case .present: return .spentBefore
            case .noRoom: return .noRoom
            }
        }
        return set(of: serial.purpose).spend(serial.number)
    }

    /// Makes a challenge good again after its spender could not store the result.
    package func takeBack(_ serial: ChallengeSerial) {
        guard serial.epoch == epoch else { return others(of: serial.purpose).remove(serial) }
        set(of: serial.purpose).takeBack(serial.number)
    }

    package func isSpent(_ serial: ChallengeSerial) -> Bool {
        guard serial.epoch == epoch else { return others(of: serial.purpose).contains(serial) }
        return set(of: serial.purpose).isSpent(serial.number)
    }

    // MARK: First tries

    /// Whether this challenge was never tried before: `true` for exactly one of all callers, and
    /// for none when ``rememberedBlocksMax`` is reached.
    package func isFirstTry(of serial: ChallengeSerial) -> Bool { tried.add(serial) == .added }

    /// Seconds that a challenge of this purpose is good.
    package func lifetime(of purpose: ChallengePurpose) -> Int64 { set(of: purpose).lifetime }

    /// Challenges of this purpose issued since the start.
    package func issued(_ purpose: ChallengePurpose) -> UInt64 { set(of: purpose).issued }

    /// Bytes that the spent challenges of both purposes take now, and those that were tried.
    package var spentBytes: Int {
        enrolment.bytes + assertion.bytes + earlier.bytes + elsewhere.bytes + tried.bytes
    }

    /// The most bytes that they take with this capacity.
    package static func spentBytesMax(capacity: Int) -> Int {
        2 * SpentChallenges.bytesMax(capacity: capacity)
            + 3 * RememberedChallenges.bytesMax(capacity: rememberedBlocksMax)
    }

    /// Bounds a time, so that additions and subtractions can't overflow.
    private static func bounded(_ now: Int64) -> Int64 { min(max(now, 0), 1 << 60) }

    /// A challenge of no number that has expired now: for a client that gets no other.
    package func expired(_ purpose: ChallengePurpose, now: Int64) -> [UInt8] {
        let now = Self.bounded(now)
        let key = signingKey(of: purpose, now: now)
        return UnverifiedChallenge.text(of: purpose, epoch: epoch, serial: 0, expiry: now, key: key)
    }

    private func signingKey(of purpose: ChallengePurpose, now: Int64) -> HMACSHA256.Key {
        guard case .fleet = reach(of: purpose), let keys = shared.withLock({ $0 }) else {
            return key(of: purpose)
        }
        return keys.signing(at: now)
    }

    private func reach(of purpose: ChallengePurpose) -> Reach {
        switch purpose {
        case .enrolment: enrolmentReach
        case .assertion: assertionReach
        }
    }

    /// The memory of challenges that another start or another gateway has issued.
    private func others(of purpose: ChallengePurpose) -> RememberedChallenges {
        switch purpose {
        case .enrolment: earlier
        case .assertion: elsewhere
        }
    }

    private func key(of purpose: ChallengePurpose) -> HMACSHA256.Key {
        switch purpose {
        case .enrolment: enrolmentKey
        case .assertion: assertionKey
        }
    }

    private func set(of purpose: ChallengePurpose) -> SpentChallenges {
        switch purpose {
        case .enrolment: enrolment
        case .assertion: assertion
        }
    }
}

// Hand-over to the successor: all that was spent, and the keys that recognise challenges.
extension ChallengeIssuer {
    private static let version: UInt8 = 1

    /// The state that the successor needs. A reader of it can make challenges, so it goes to that
    /// process and nowhere else. Afterwards only the successor may issue and spend.
    package var state: [UInt8] {
        var out = ByteWriter()
        out.byte(Self.version)
        out.word(epoch)
        out.block(secret)
        enrolment.write(to: &out)
        assertion.write(to: &out)
        earlier.write(to: &out)
        tried.write(to: &out)
        return out.bytes
    }

    /// An issuer that continues where another process has stopped.
    ///
    /// - `state`: of that process. Lifetimes and capacity may differ from its own.
    package convenience init(
        lifetimes: Lifetimes = Lifetimes(),
        capacity: Int = capacityDefault,
        enrolmentSecret: [UInt8]? = nil,
        goingOnFrom state: [UInt8]
    ) throws(ByteReader.Fault) {
        var state = ByteReader(state)
        guard try state.byte() == Self.version else { throw ByteReader.Fault() }
        let epoch = try state.word()
        let secret = try state.block(max: 32)
        guard secret.count == 32 else { throw ByteReader.Fault() }
        self.init(
            lifetimes: lifetimes,
            capacity: capacity,
            secrets: Secrets(own: secret, enrolment: enrolmentSecret),
            epoch: epoch
        )
        try enrolment.take(from: &state)
        try assertion.take(from: &state)
        try earlier.take(from: &state)
        try tried.take(from: &state)
        try state.end()
    }
}

extension ChallengeSerial {
    package func write(to out: inout ByteWriter) {
        out.byte(purpose.rawValue)
        out.word(epoch)
        out.word(number)
        out.number(expiry)
    }

    package init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        guard let purpose = ChallengePurpose(rawValue: try bytes.byte()) else {
            throw ByteReader.Fault()
        }
        self.purpose = purpose
        epoch = try bytes.word()
        number = try bytes.word()
        expiry = try bytes.number()
    }
}
