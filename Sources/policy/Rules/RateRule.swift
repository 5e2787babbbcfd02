import Signatures

/// How often one device may make requests of a rule: `rate`.
///
/// The device is known by its key. A request counts once its signature was verified and it is no
/// replay, and before its counter or its challenge is consumed.
package struct RateRule: Hashable, Sendable {
    /// A number of requests in a time.
    package struct Pace: Hashable, Sendable {
        /// The times that a rule may name.
        package enum Period: Int, CaseIterable, Sendable {
            case second = 1
            case minute = 60
            case hour = 3_600
            case day = 86_400

            /// `s`, `m`, `h` or `d`.
            package var unit: String {
                switch self {
                case .second: "s"
                case .minute: "m"
                case .hour: "h"
                case .day: "d"
                }
            }
        }

        /// 1…``countMax``.
        package let count: Int
        package let period: Period

        package static let countMax = 10_000

        /// `nil` for a number out of range.
        package init?(_ count: Int, per period: Period) {
            guard (1...Self.countMax).contains(count) else { return nil }
            (self.count, self.period) = (count, period)
        }

        /// `10/s`.
        package var text: String { "\(count)/\(period.unit)" }
    }

    /// The longest time in which a bucket is refilled.
    package static let refillDaysMax = 30

    /// What is refilled.
    package let pace: Pace
    /// The most requests at once, after a pause.
    package let burst: Int
    /// Names the rule and its rate: the same in all gateways of a fleet whose rules agree. A rule
    /// with another id or rate begins at zero.
    package let salt: UInt64

    /// - rule: the id of the rule.
    package init(_ pace: Pace, burst: Int, of rule: String) {
        (self.pace, self.burst) = (pace, burst)
        let digest = SHA256.digest(of: Array("rate\n\(rule)\n\(pace.text)\n\(burst)".utf8))
        salt = digest.array.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The most of a burst that is refilled in ``refillDaysMax``.
    package static func burstMax(_ pace: Pace) -> Int {
        pace.count * refillDaysMax * Pace.Period.day.rawValue / pace.period.rawValue
    }

    /// `a key at most 10/s, 20 at once`
    package var text: String { "a key at most \(pace.text), \(burst) at once" }
}
