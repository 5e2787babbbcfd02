import AppAttest
import Cryptography
import Rules
import Synchronization

/// What each device has used of the limits of rules: `rate`. One table for all rules and all event
/// loops, which outlives reloads.
///
/// A request counts when all else holds: its signature, the environment, the challenge, the build,
/// the risk, and that neither its counter nor its challenge was used before. So a forged or
/// replayed request costs the device nothing. Over the limit nothing is consumed: the same request
/// is good later. Where the store finds afterwards that the request is a replay after all, as the
/// database of a fleet may, the token is given back.
///
/// When a row of eight is full, the device is evicted whose bucket is full first. Its next request
/// finds a full bucket. So with more active devices than fit, a limit becomes wider and never
/// narrower: a crowd of devices can't take anything from another one's limit. Who has that many
/// devices may make that many times the rate anyway.
///
/// A rule whose id or rate has changed begins at zero.
package final class KeyRates: Sendable {
    /// The most devices that are counted at once, each for each rule: 3.5 MiB, from the first
    /// request of a rule with a rate on.
    package static let devicesMax = 1 << 17
    /// The longest time that a bucket may need to be full by what the database says, in
    /// nanoseconds: twice the longest that a rule may have.
    private static let longest = UInt64(RateRule.refillDaysMax) * 2 * 86_400_000_000_000

    /// What a device may be over its rates at no cost for its address. A device that is somewhat
    /// too fast must not use up the failures of those that share its NAT; one that floods does.
    private static let forgiven = TokenRate(1, perSeconds: 1, burst: 60)
    /// The most devices over their rates that are counted at once: 448 KiB, from the first one on.
    private static let forgivenMax = 1 << 14

    private let buckets = AtomicLazyReference<SharedBuckets>()
    /// What is left of ``forgiven``, of all rules together.
    private let excess = AtomicLazyReference<SharedBuckets>()
    private let names = FleetNames(key: (RandomBytes.word(), RandomBytes.word()))

    package init() {}

    /// Devices that were evicted before their buckets were full.
    package var evicted: UInt64 { buckets.load()?.evicted ?? 0 }

    /// Counts a request: `nil`, or the nanoseconds until the device may make one.
    ///
    /// - now: monotonic nanoseconds.
    func take(_ keyID: KeyID, _ rule: RateRule, now: UInt64) -> UInt64? {
        made.take(subject(keyID, rule), at: TokenRate(rule), of: names.gateways, now: now)
    }

    /// The nanoseconds until ``take(_:_:now:)`` can succeed; `nil` where it can now.
    func wait(_ keyID: KeyID, _ rule: RateRule, now: UInt64) -> UInt64? {
        buckets.load()?.wait(for: subject(keyID, rule), at: TokenRate(rule), now: now)
    }

    /// A request that was counted is a replay.
    func giveBack(_ keyID: KeyID, _ rule: RateRule) {
        buckets.load()?
            .giveBack(subject(keyID, rule), at: TokenRate(rule), of: names.gateways)
    }

    /// Counts a request over the rate whose signature is good: whether it costs the device's
    /// address nothing. Each gateway counts for itself.
    func forgives(_ keyID: KeyID, now: UInt64) -> Bool {
        let table =
            excess.load()
            ?? excess.storeIfNil(SharedBuckets(subjects: Self.forgivenMax, telling: .halfUsed))
        let subject = names.subject(keyID.digest.bytes.span)
        return table.take(subject, at: Self.forgiven, of: 1, now: now) == nil
    }

    private func subject(_ keyID: KeyID, _ rule: RateRule) -> UInt64 {
        names.subject(names.subject(keyID.digest.bytes.span) ^ rule.salt)
    }

    /// The table, made when it is first needed.
    private var made: SharedBuckets {
        if let buckets = buckets.load() { return buckets }
        return buckets.storeIfNil(SharedBuckets(subjects: Self.devicesMax, telling: .halfUsed))
    }
}

/// What a gateway tells the others of its fleet, and hears of them.
extension KeyRates {
    /// The other gateways can be told, under the names that this key gives: all that was counted
    /// until now is forgotten.
    package func share(under key: (UInt64, UInt64)) {
        if names.share(under: key) { buckets.load()?.forget() }
    }

    /// What was taken here and the database is to hear.
    package func takeUntold() -> [FleetLimit.Use] {
        let untold = buckets.load()?.takeUntold(atMost: FleetLimit.toldMax) ?? []
        return untold.map { FleetLimit.Use(.device, $0) }
    }

    /// The database did not take these. Those of other limits are ignored.
    package func tellAgain(_ uses: some Sequence<FleetLimit.Use>) {
        for use in uses where use.limit == .device {
            buckets.load()?.tellAgain(use.subject, micros: UInt64(max(use.micros, 0)))
        }
    }

    /// The database has answered. Levels of other limits are ignored.
    ///
    /// - gateways: the number of them that serve.
    /// - tick: monotonic nanoseconds.
    package func heard(_ levels: [FleetLimit.Level], gateways: Int, tick: UInt64) {
        names.gateways = gateways
        for level in levels where level.limit == .device {
            let time = min(UInt64(min(max(level.fullIn, 0), 1 << 52)) * 1_000, Self.longest)
            // Another gateway may have counted before this one.
            let table = time > 0 ? made : buckets.load()
            table?.set(level.subject, fullIn: time, of: names.gateways, now: tick)
        }
    }
}

extension TokenRate {
    fileprivate init(_ rule: RateRule) {
        self.init(rule.pace.count, perSeconds: rule.pace.period.rawValue, burst: rule.burst)
    }
}
