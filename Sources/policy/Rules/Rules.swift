// The demands on a request, and the clients that they are for: the rules, as values.
//
//   RuleSet                   all rules of a configuration and the default, with an index over them
//     Rule       one rule: a RouteMatch, an origin, and what is asked
//       RouteMatch   host, method and path pattern, and the clients' addresses
//       RateRule     how often one device may make requests
//       Rollout      for which share of the keys `enforce` refuses, and since when
//       AppScope     keys of which apps are admitted
//   AppPolicy                 what is asked of a key when it is enrolled
//   CoverIndex, OverlapIndex  which rules take the requests of another rule, all of them or some
//
// The first rule that matches, in the order of the files, decides. There is no precedence by
// specificity: the first rule wins. Loading a file refuses a rule all of whose requests meet one
// earlier rule (`RouteMatch.covers`).
//
// A path is looked up as written, and also in every interpretation that its origin may make of it:
// HTTPWire's `PathInterpretation`. Patterns are interpreted in the same way, so that a rule for
// `/V1/Orders` matches `/v1/orders` at an origin that ignores case. If the interpretations lead to
// rules that decide differently, each of them may refuse the request (`DisputedRoute`).
//
// Nothing here reads a clock, a file or a socket. Matching allocates nothing, and its cost grows
// with the length of the path and not with the number of rules.

/// A number of bytes.
package struct ByteCount: Comparable, Hashable, Sendable {
    /// 0 or more.
    package let rawValue: Int

    /// A negative count becomes 0.
    package init(_ rawValue: Int) { self.rawValue = max(0, rawValue) }

    /// `count` times 1024; no more than `Int.max`.
    package static func kibibytes(_ count: Int) -> ByteCount { scaled(count, by: 10) }
    /// `count` times 1024².
    package static func mebibytes(_ count: Int) -> ByteCount { scaled(count, by: 20) }
    /// `count` times 1024³.
    package static func gibibytes(_ count: Int) -> ByteCount { scaled(count, by: 30) }

    private static func scaled(_ count: Int, by shift: Int) -> ByteCount {
        let (product, overflow) = count.multipliedReportingOverflow(by: 1 << shift)
        return ByteCount(overflow ? .max : product)
    }

    /// The units a text may carry, with their factors. `B` alone is bytes.
    package static let units: [(name: String, factor: Int)] = [
        ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40),
        ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("B", 1),
    ]

    /// Reads `16KiB`, `1GiB`, `500kB`, `512B`: a whole number and its unit, without a space.
    package init?(text: some StringProtocol) {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let unit = text.dropFirst(digits.count)
        guard digits.count <= 18, let count = Int(digits),
            let factor = Self.units.first(where: { $0.name == unit })?.factor
        else { return nil }
        let (product, overflow) = count.multipliedReportingOverflow(by: factor)
        guard !overflow else { return nil }
        self.init(product)
    }

    /// The count with the largest unit that divides it: `16KiB`.
    package var text: String {
        for shift in [40, 30, 20, 10] where rawValue > 0 && rawValue % (1 << shift) == 0 {
            return "\(rawValue >> shift)\(["KiB", "MiB", "GiB", "TiB"][shift / 10 - 1])"
        }
        return "\(rawValue)B"
    }

    package static func < (left: ByteCount, right: ByteCount) -> Bool {
        left.rawValue < right.rawValue
    }
}
