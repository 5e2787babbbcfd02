public import Signatures

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The texts of `localizedDescription`. They are English; for other languages use `reason`.
extension ObjectRefusal: LocalizedError {
    /// What is wrong.
    public var errorDescription: String? { reason.summary }
    /// What was found.
    public var failureReason: String? { detail }
    /// What to look at first.
    public var recoverySuggestion: String? { reason.nextStep }
}

extension UnixTime {
    /// The moment of a `Date`, rounded down to a nanosecond. A moment that 64 bits of seconds can't
    /// hold becomes the nearest one that they can.
    public init(_ date: Date) {
        let whole = date.timeIntervalSince1970.rounded(.down)
        guard let seconds = Int64(exactly: whole) else {
            self.init(seconds: whole > 0 ? .max : .min)
            return
        }
        let rest = (date.timeIntervalSince1970 - whole) * 1_000_000_000
        self.init(seconds: seconds, nanoseconds: UInt32(min(rest, 999_999_999)))
    }

    /// The moment as a `Date`, which is exact to about a microsecond.
    public var date: Date {
        Date(timeIntervalSince1970: Double(seconds) + Double(nanoseconds) / 1_000_000_000)
    }
}
