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
    /// The attesting keys that are remembered: 512 KiB. Each costs an attacker a phone's key.
    private static let attestersMax = 8_192
    /// The longest wait that a client is asked for, in seconds.
    package static let waitSecondsMax: Int64 = 3_600

    package let settings: Settings
    private let rate: TokenRate
    private let shareRate: TokenRate
    private let interval: UInt64
    /// Tokens that are reserved for addresses within their share.
    private let reserve: Int
    private let ramp: Rollout
    private let bucket = Atomic<UInt64>(0)
    private let queue = Atomic<UInt64>(0)
    private let attesterRate: TokenRate?
    private let attesters: AddressTable

    package init(_ settings: Settings) {
        self.settings = settings
        rate = TokenRate(settings.perSecond, burst: settings.burst)
        shareRate = TokenRate(
            settings.perSecond,
            perSeconds: Self.addressShare,
            burst: settings.burst / Self.addressShare
        )
        interval = 1_000_000_000 / UInt64(min(max(settings.perSecond, 1), 1_000_000))
        reserve = settings.burst / 2
        ramp = Rollout(settings.ramp, salt: "enrolment")
        attesterRate = settings.perAttester.map { count in
            TokenRate(count, perSeconds: 86_400, burst: count)
        }
        attesters = AddressTable(
            capacity: Self.attestersMax,
            key: (RandomBytes.word(), RandomBytes.word())
        )
    }

    /// Takes a token of the key that has attested an Android key: `nil`, or the nanoseconds until
    /// there is one.
    ///
    /// - `attester`: SHA-256 of its public key.
    /// - `tick`: monotonic nanoseconds.
    func take(attester: [UInt8], tick: UInt64) -> UInt64? {
        guard let attesterRate, let id = KeyID(bytes: attester),
            case .held(let place) = attesters.hold(id, now: tick)
        else { return nil }
        defer { place.release(now: tick) }
        return place.takeEnrolment(attesterRate, now: tick)
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
        guard let wait = take(caller.entry, tick: tick) else { return .admitted }
        // Rounded up: a second is the unit of Retry-After (RFC 9110 §10.2.3).
        let seconds = Int64(clamping: (wait + 999_999_999) / 1_000_000_000)
        return .throttled(waitSeconds: Self.spread(seconds, draw))
    }

    /// Takes a token: `nil`, or the nanoseconds until this caller can expect one.
    private func take(_ entry: AddressEntry?, tick: UInt64) -> UInt64? {
        // Every call is charged to the address, also a refused one. So calls beyond the share are
        // in the address's own queue.
        if let entry, entry.takeEnrolment(shareRate, now: tick) != nil {
            guard let wait = rate.take(from: bucket, leaving: reserve, now: tick) else {
                return nil
            }
            return entry.enqueueEnrolment { Self.enqueue(in: $0, wait, interval, tick) }
        }
        return rate.take(from: bucket, now: tick).map {
            Self.enqueue(in: queue, $0, interval, tick)
        }
    }

    /// Takes the next place of a queue, which moves by one token's time: the nanoseconds until it.
    private static func enqueue(
        in queue: borrowing Atomic<UInt64>,
        _ wait: UInt64,
        _ interval: UInt64,
        _ tick: UInt64
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
