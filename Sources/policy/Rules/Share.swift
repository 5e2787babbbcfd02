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
        for octet in text.utf8 {
            guard !isEnded else { return nil }
            switch octet {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                if let count = decimals {
                    guard count < 4 else { return nil }
                    decimals = count + 1
                } else {
                    guard digits < 3 else { return nil }
                    digits += 1
                }
                millionths = millionths * 10 + Int(octet - UInt8(ascii: "0"))
            case UInt8(ascii: "."):
                guard decimals == nil, digits > 0 else { return nil }
                decimals = 0
            case UInt8(ascii: "%"):
                isEnded = true
            default:
                return nil
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

    package static func < (left: Share, right: Share) -> Bool {
        left.millionths < right.millionths
    }
}
