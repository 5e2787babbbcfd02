internal import Cryptography
package import Signatures

/// The share of the keys for which `enforce` refuses; all others are treated as in `observe`.
///
/// Sticky: a key's bucket is a function of the salt and the key. Monotone: raising the share adds
/// keys and removes none. Salted per rule: a key's place in one rule's rollout is independent of
/// its place in another's.
///
/// It limits how many clients a mistake hits. It is no barrier: a client can leave the share with
/// another key or address.
package struct Rollout: Sendable {
    /// The share, fixed or growing.
    package enum Schedule: Hashable, Sendable {
        case fixed(Share)
        /// No key before `from`; then linear from `start` to `end` at `to`; then `end`.
        ///
        /// A date stands for its first second in UTC. `from` is before `to`, `start` not above
        /// `end`, and the years are four digits.
        case growing(from: UnixTime, to: UnixTime, start: Share, end: Share)
    }

    /// What the bucket is computed from.
    package enum Subject: String, CaseIterable, Sendable {
        /// The key that has signed the request; without a signature, the client address. A client
        /// could choose an unsigned key id so that it falls outside.
        case key
        case address
    }

    package let schedule: Schedule
    package let subject: Subject
    /// The key of the HMAC: the rule's id, unless rules are meant to share their buckets.
    package let salt: String
    private let key: HMACSHA256.Key

    package init(_ schedule: Schedule, by subject: Subject = .key, salt: String) {
        self.schedule = schedule
        self.subject = subject
        self.salt = salt
        let bytes = Array(salt.utf8)
        key = HMACSHA256.Key(bytes.span)
    }

    package func share(at now: UnixTime) -> Share {
        switch schedule {
        case .fixed(let share): return share
        case .growing(let from, let to, let start, let end):
            guard now >= from else { return .none }
            guard now < to else { return end }
            // Years end at 9999, so the product stays below 2.6 × 10¹⁷.
            let gone = now.seconds - from.seconds
            let span = max(1, to.seconds - from.seconds)
            let growth = Int64(end.millionths - start.millionths) * gone / span
            return Share(millionths: start.millionths + Int(growth)) ?? end
        }
    }

    /// HMAC-SHA-256 with the salt as its key, over the key id's 32 bytes or the address's 4 or 16.
    package func bucket(of subject: Span<UInt8>) -> Bucket {
        let mac = key.code(subject).bytes
        return Bucket(mac: mac.span)
    }

    /// Whether the rule is enforced for this key or address now. Hashes only when the share is
    /// neither 0 % nor 100 %.
    package func enforces(_ subject: Span<UInt8>, at now: UnixTime) -> Bool {
        let share = share(at: now)
        if share == .none { return false }
        return share == .whole || bucket(of: subject).isWithin(share)
    }

    /// Whether a bucket is ever computed: it is not at 0 % and at 100 %.
    package var dependsOnBucket: Bool { ![.fixed(.whole), .fixed(.none)].contains(schedule) }

    /// The time from which the growing share includes a bucket; `nil` where it never does, or does
    /// not grow.
    package func admission(of bucket: Bucket) -> UnixTime? {
        guard case .growing(let from, let to, let start, let end) = schedule,
            bucket.isWithin(end)
        else { return nil }
        guard !bucket.isWithin(start) else { return from }
        // The share is below 10⁶ and the span below 2.6 × 10¹¹ seconds. Rounded up, since
        // ``share(at:)`` rounds down.
        let growth = Int64(max(end.millionths - start.millionths, 1))
        let missing = Int64(bucket.number + 1 - start.millionths)
        let span = max(1, to.seconds - from.seconds)
        return UnixTime(seconds: from.seconds + (missing * span + growth - 1) / growth)
    }

    /// The rollout in words: `25% by key`.
    package var text: String { "\(schedule.text) by \(subject.rawValue)" }
}

extension Rollout: Equatable {
    package static func == (left: Rollout, right: Rollout) -> Bool {
        left.schedule == right.schedule && left.subject == right.subject && left.salt == right.salt
    }
}

/// The place of one key, or one client address, in the rollout of one rule.
package struct Bucket: Hashable, Sendable {
    /// 0…999,999. A share of n millionths includes the buckets below n.
    package let number: Int

    /// The first eight bytes of a MAC, big-endian, modulo a million.
    ///
    /// The remainder favours low buckets by less than one part in 10¹³.
    init(mac: Span<UInt8>) {
        var value: UInt64 = 0
        for index in 0..<min(8, mac.count) { value = value << 8 | UInt64(mac[index]) }
        number = Int(value % 1_000_000)
    }

    package func isWithin(_ share: Share) -> Bool { number < share.millionths }
}

/// A share of the keys, in millionths.
package struct Share: Comparable, Hashable, Sendable {
    /// 0…1,000,000.
    package let millionths: Int

    /// No key.
    package static let none = Share(unchecked: 0)
    /// Every key.
    package static let whole = Share(unchecked: 1_000_000)

    private init(unchecked millionths: Int) { self.millionths = millionths }

    /// `nil` outside 0…1,000,000.
    package init?(millionths: Int) {
        guard (0...1_000_000).contains(millionths) else { return nil }
        self.millionths = millionths
    }

    /// Reads `25%` or `0.5%`: up to three digits, up to four decimals, at most 100.
    package init?(percent text: some StringProtocol) {
        var millionths = 0
        var digits = 0
        var decimals: Int?
        var isEnded = false
        for byte in text.utf8 {
            guard !isEnded else { return nil }
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                if let count = decimals {
                    guard count < 4 else { return nil }
                    decimals = count + 1
                } else {
                    guard digits < 3 else { return nil }
                    digits += 1
                }
                millionths = millionths * 10 + Int(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "."):
                guard decimals == nil, digits > 0 else { return nil }
                decimals = 0
            case UInt8(ascii: "%"): isEnded = true
            default: return nil
            }
        }
        guard isEnded, digits > 0, decimals != 0 else { return nil }
        for _ in (decimals ?? 0)..<4 { millionths *= 10 }
        self.init(millionths: millionths)
    }

    /// The share as it is written in a rule: `25%`, `0.5%`.
    package var text: String {
        let whole = millionths / 10_000
        var rest = millionths % 10_000
        guard rest > 0 else { return "\(whole)%" }
        var places = 4
        while rest % 10 == 0 {
            rest /= 10
            places -= 1
        }
        let digits = String(rest)
        return "\(whole).\(String(repeating: "0", count: places - digits.count))\(digits)%"
    }

    package static func < (left: Share, right: Share) -> Bool { left.millionths < right.millionths }
}

/// When a rule that enforces falls back to `observe` by itself: `guard` of a rule.
///
/// A guard gives up protection when too many clients suffer from it. So an attacker must not be
/// able to make it fall. It counts installs, which are keys that Apple has attested and that are
/// enrolled here, each once in a window. It does not count requests: one client can send any number
/// of them.
package struct GuardRule: Hashable, Sendable {
    /// The counted unit. The raw value is the word of `of`.
    package enum Unit: String, CaseIterable, Sendable {
        case installs
    }

    package static let windowDefault = Duration.seconds(300)
    package static let minimumDefault = 100
    /// The least number of refused installs that makes it fall, whatever their share: a few may be
    /// chance, or one person's devices.
    package static let refusedMin = 10

    /// The guard falls above this share of the installs; neither 0 % nor 100 %.
    package var refused: Share
    package var unit = Unit.installs
    /// The length of the sliding window, 1m…1h.
    package var window = windowDefault
    /// The least number of installs for a decision, 10…1000000.
    package var minimum = minimumDefault

    package init(refused: Share) { self.refused = refused }
}

/// How a rule treats its requests. The raw values are written in rules, logs and metrics.
package enum Mode: String, CaseIterable, Sendable {
    /// Nothing is verified; the request is forwarded.
    case off
    /// Verified and counted, never refused; the origin gets the would-be verdict.
    case observe
    /// Refused when the verdict is not a pass and the rollout has reached the key.
    case enforce
    /// Answered 404 by the gateway. Nothing is verified, and no origin sees the request.
    case deny

    /// Whether a rule of this mode judges its requests, and so says what they must carry.
    package var verifies: Bool { self == .observe || self == .enforce }
    /// Whether a rule of this mode forwards requests without the verdict `pass`.
    package var isOpen: Bool { self == .off || self == .observe }
}

/// The treatment of a request when a dependency of its verdict has failed.
///
/// It never lets a bad assertion through: that is a refusal, not an error.
package enum DependencyErrorRule: String, CaseIterable, Sendable {
    /// Answered 503.
    case refuse
    /// Forwarded as unverified.
    case forward
}

/// The treatment of a CORS preflight, with which no browser can send a proof.
///
/// Forwarding relies on the origin: an application that runs one handler for every method runs it
/// for OPTIONS too, and a preflight is easily written by hand.
package enum PreflightRule: String, CaseIterable, Sendable {
    /// Judged like every request, and so refused where the rule enforces.
    case judge
    /// Forwarded, marked, and counted apart.
    case forward
}
