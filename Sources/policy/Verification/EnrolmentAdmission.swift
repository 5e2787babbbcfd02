package import AppAttest
import Cryptography
package import HTTPWire
package import Rules
package import Signatures
import Synchronization

/// Decides who may enrol now, when a client asks for an enrolment challenge, before Apple is asked
/// for an attestation.
///
/// First the ramp: is this key, or this address where no key is named, in the share of the keys
/// that may enrol? Then the rate, which is for all clients together.
///
/// Asking costs a client nothing, so the rate is divided. An address has a tenth of the rate for
/// itself (``addressShare``). Beyond that it takes tokens only from the upper half of the bucket.
/// The lower half is reserved for addresses within their share. Ten addresses that ask all the time
/// can use up the rate, and one can't.
///
/// A client over the rate gets a time to come again. Each client gets another time, as in a queue,
/// but no list of them is kept. An address over its share has a queue of its own, which does not
/// make others wait.
///
/// The ramp is no barrier: a client can choose a key id that is in the share (see ``Rollout``).
///
/// In a fleet the rate, an address's share of it and the keys of an attester are limits of all
/// gateways together (``SharedLimit``). The gateways share the key of the hash by which they name
/// addresses and attesters to each other.
package final class EnrolmentAdmission: Sendable {
    /// What the configuration says: `enrolment`.
    package struct Settings: Hashable, Sendable {
        /// `rate`: enrolment challenges a second, for all apps together. Default 100/s,
        /// 1/s…10000/s. Apple asks for less than 100 `attestKey` calls a second over all installs
        /// of an app ("Preparing to use the App Attest service").
        package var perSecond = 100
        /// `burst`: challenges at once after a pause. Default 200, 1…1000000.
        package var burst = 200
        /// `per_attester`: Android keys in a day that the same public key attests; `nil` for no
        /// limit. Default 1000/d, 1/d…1000000/d. A phone of RKP has such a key for itself. A
        /// factory gave one to 100,000 phones, and one that leaked signs any description.
        package var perAttester: Int? = 1_000
        /// `percent`, or `from`, `to`, `start` and `end`: the share of the keys that may enrol, as
        /// a rule's rollout has it. Default: all.
        package var ramp = Rollout.Schedule.fixed(.whole)

        package init() {}
    }

    /// The caller.
    package struct Caller: Sendable {
        /// The key that will be attested, where the call names it.
        package var keyID: KeyID?
        package var address: IPAddress
        /// The place of the address; `nil` for an address without limits.
        package var entry: AddressEntry?

        package init(keyID: KeyID? = nil, address: IPAddress, entry: AddressEntry? = nil) {
            self.keyID = keyID
            self.address = address
            self.entry = entry
        }
    }

    /// The answer to the caller.
    package enum Answer: Equatable, Sendable {
        case admitted
        /// Over the rate; come again after this number of seconds.
        case throttled(waitSeconds: Int)
        /// The key is not in the share yet; come again after this number of seconds.
        case notYet(waitSeconds: Int)
    }

    /// Each address has one part in this number of rate and burst for itself.
    package static let addressShare = 10
    /// The addresses, and the attesting keys, that are distinguished: 200 KiB each. An attesting
    /// key costs an attacker a phone's key.
    private static let subjectsMax = 8_192
    /// The one subject of the rate that is for all clients.
    private static let everyone: UInt64 = 1
    /// The longest wait that a client is asked for, in seconds.
    package static let waitSecondsMax: Int64 = 3_600

    package let settings: Settings
    private let rate: SharedLimit
    private let shares: SharedLimit
    /// `nil` where attesters have no limit.
    private let attesters: SharedLimit?
    private let interval: UInt64
    /// Tokens that are reserved for addresses within their share.
    private let reserve: Int
    private let ramp: Rollout
    private let queue = Atomic<UInt64>(0)
    /// Of addresses and attesters.
    private let names: FleetNames

    /// - predecessor: the one before a reload, of whose fleet this one is. A limit that the reload
    ///   has not changed keeps what was taken of it.
    package init(_ settings: Settings, after predecessor: EnrolmentAdmission? = nil) {
        func kept(_ before: SharedLimit?, at rate: TokenRate, _ subjects: Int) -> SharedLimit {
            if let before, before.rate == rate { return before }
            return SharedLimit(rate, subjects: subjects)
        }
        self.settings = settings
        let all = TokenRate(settings.perSecond, burst: settings.burst)
        rate = kept(predecessor?.rate, at: all, 1)
        let share = TokenRate(
            settings.perSecond,
            perSeconds: Self.addressShare,
            burst: settings.burst / Self.addressShare
        )
        shares = kept(predecessor?.shares, at: share, Self.subjectsMax)
        attesters = settings.perAttester.map { count in
            let rate = TokenRate(count, perSeconds: 86_400, burst: count)
            return kept(predecessor?.attesters, at: rate, Self.subjectsMax)
        }
        interval = 1_000_000_000 / UInt64(min(max(settings.perSecond, 1), 1_000_000))
        reserve = settings.burst / 2
        ramp = Rollout(settings.ramp, salt: "enrolment")
        names = predecessor?.names ?? FleetNames(key: (RandomBytes.word(), RandomBytes.word()))
    }

    /// The name of an address: an IPv6 address counts as its /64, as in ``AddressTable``.
    private func subject(_ address: IPAddress) -> UInt64 {
        let word =
            switch address {
            // As RFC 4291 §2.5.5.2 maps it.
            case .v4(let address): 0xFFFF << 32 | UInt64(address)
            case .v6(let high, _): high
            }
        return names.subject(word)
    }

    /// Takes a token of the key that has attested an Android key: `nil`, or the nanoseconds until
    /// there is one.
    ///
    /// - `attester`: SHA-256 of its public key.
    /// - `tick`: monotonic nanoseconds.
    func take(attester: [UInt8], tick: UInt64) -> UInt64? {
        guard let attesters, attester.count == 32 else { return nil }
        return attesters.take(names.subject(attester.span), of: names.gateways, now: tick)
    }

    /// The nanoseconds until ``take(attester:tick:)`` can succeed; `nil` where it can now.
    func wait(attester: [UInt8], tick: UInt64) -> UInt64? {
        guard let attesters, attester.count == 32 else { return nil }
        return attesters.wait(for: names.subject(attester.span), now: tick)
    }

    /// Asks for one challenge.
    ///
    /// - `now`: the wall clock.
    /// - `tick`: monotonic nanoseconds.
    /// - `draw`: 64 random bits, which spread the waiting times.
    package func ask(_ caller: Caller, now: UnixTime, tick: UInt64, draw: UInt64) -> Answer {
        let subject = caller.keyID.map { $0.digest.array } ?? caller.address.bytes
        guard ramp.enforces(subject.span, at: now) else {
            let wait = ramp.admission(of: ramp.bucket(of: subject.span))
                .map { max($0.seconds - now.seconds, 1) }
            return .notYet(waitSeconds: Self.spread(wait ?? Self.waitSecondsMax, draw))
        }
        guard let wait = take(caller, tick: tick) else { return .admitted }
        // Rounded up: a second is the unit of Retry-After (RFC 9110 §10.2.3).
        let seconds = Int64(clamping: (wait + 999_999_999) / 1_000_000_000)
        return .throttled(waitSeconds: Self.spread(seconds, draw))
    }

    /// Takes a token: `nil`, or the nanoseconds until this caller can expect one.
    private func take(_ caller: Caller, tick: UInt64) -> UInt64? {
        let gateways = names.gateways
        // A place of the queue is this gateway's share of the rate.
        let interval = interval &* UInt64(gateways)
        // Every call is charged to the address, also a refused one. So calls beyond the share are
        // in the address's own queue.
        if let entry = caller.entry,
            shares.take(subject(caller.address), of: gateways, now: tick) != nil
        {
            let wait = rate.take(Self.everyone, leaving: reserve, of: gateways, now: tick)
            guard let wait else { return nil }
            return entry.enqueueEnrolment {
                Self.enqueue(in: $0, after: wait, interval: interval, tick: tick)
            }
        }
        return rate.take(Self.everyone, of: gateways, now: tick).map {
            Self.enqueue(in: queue, after: $0, interval: interval, tick: tick)
        }
    }

    /// Takes the next place of a queue, which moves by one token's time: the nanoseconds until it.
    private static func enqueue(
        in queue: borrowing Atomic<UInt64>,
        after wait: UInt64,
        interval: UInt64,
        tick: UInt64
    ) -> UInt64 {
        let latest = tick &+ UInt64(waitSecondsMax) * 1_000_000_000
        var seen = queue.load(ordering: .relaxed)
        while true {
            let place = min(max(seen, tick &+ wait), latest)
            let exchange = queue.compareExchange(
                expected: seen,
                desired: place &+ interval,
                ordering: .relaxed
            )
            if exchange.exchanged { return place &- tick }
            seen = exchange.original
        }
    }

    /// The time plus up to a quarter of it, so that clients with the same wait do not come in the
    /// same second. Where that would exceed the longest wait, a value between half of it and all of
    /// it.
    private static func spread(_ seconds: Int64, _ draw: UInt64) -> Int {
        let most = waitSecondsMax
        let isLong = seconds > most - most / 5
        let (least, room) = isLong ? (most / 2, most / 2) : (max(seconds, 1), max(seconds, 1) / 4)
        return Int(least + Int64(draw % UInt64(room + 1)))
    }
}

/// What a gateway tells the others of its fleet, and hears of them.
extension EnrolmentAdmission {
    private func limit(_ limit: FleetLimit) -> SharedLimit? {
        switch limit {
        case .rate: rate
        case .address: shares
        case .attester: attesters
        case .device: nil
        }
    }

    /// The other gateways can be told, under the names that this key gives: all that was counted
    /// until now is forgotten.
    package func share(under key: (UInt64, UInt64)) {
        guard names.share(under: key) else { return }
        for limit in FleetLimit.allCases { self.limit(limit)?.forget() }
    }

    /// What was taken here and the database does not know.
    package func takeUntold() -> [FleetLimit.Use] {
        FleetLimit.allCases.flatMap { limit -> [FleetLimit.Use] in
            let untold = self.limit(limit)?.takeUntold(atMost: FleetLimit.toldMax) ?? []
            return untold.map { FleetLimit.Use(limit, $0) }
        }
    }

    /// The database did not take these. Those of other limits are ignored.
    package func tellAgain(_ uses: some Sequence<FleetLimit.Use>) {
        for use in uses {
            limit(use.limit)?.tellAgain(use.subject, micros: UInt64(max(use.micros, 0)))
        }
    }

    /// The database has answered. Levels of other limits are ignored.
    ///
    /// - gateways: the number of them that serve.
    /// - tick: monotonic nanoseconds.
    package func heard(_ levels: [FleetLimit.Level], gateways: Int, tick: UInt64) {
        names.gateways = gateways
        for level in levels {
            limit(level.limit)?
                .set(level.subject, fullIn: level.fullIn, of: names.gateways, now: tick)
        }
    }
}
