package import Cryptography

/// Who has told the gateway something, when and why.
package struct RolloutNote: Hashable, Sendable {
    /// The most bytes of a reason.
    package static let whyMax = 256
    /// The most bytes of a name.
    package static let nameMax = 64

    /// Who orders where a guard has fallen. Operators are `uid N` or an address.
    package static let guardName = "guard"

    package let at: UnixTime
    /// As in `uid 1000`.
    package let by: String
    /// Empty for no reason given.
    package let why: String

    /// `nil` when a text is too long or has control characters, which would break lines of logs.
    package init?(at: UnixTime, by: String, why: String) {
        guard Self.isPlain(by, max: Self.nameMax), Self.isPlain(why, max: Self.whyMax) else {
            return nil
        }
        (self.at, self.by, self.why) = (at, by, why)
    }

    /// Whether a guard has ordered it, and no operator.
    package var isGuards: Bool { by == Self.guardName }

    package static func isPlain(_ text: String, max: Int) -> Bool {
        text.utf8.count <= max
            && text.unicodeScalars.allSatisfy { scalar in
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: false
                default: true
                }
            }
    }

    /// `2026-11-22T19:20:00Z, uid 0: the new build fails`
    package var text: String {
        let time = UnixTime(seconds: at.seconds).iso8601
        return "\(time), \(by)\(why.isEmpty ? "" : ": ")\(why)"
    }
}
