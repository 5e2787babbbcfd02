import Verification

/// How many lines about refused requests each address has left, on one lane.
///
/// Addresses share 4,096 places by hash, 16 bytes each: two that share one share its rate. The hash
/// has a key of its own, so that nobody can aim at another address's place.
struct RefusalLines {
    private struct Place {
        /// The bucket of ``TokenRate``.
        var bucket: UInt64 = 0
        /// Lines that were left out since the last one.
        var leftOut: UInt64 = 0
    }

    private static let count = 4_096
    private var places: [Place] = []

    /// Lines that were left out since ``take()``.
    private(set) var leftOut: UInt64 = 0

    /// A request of an address was refused.
    ///
    /// - Parameters:
    ///   - hash: of the address.
    ///   - rate: how many lines an address may have, and its burst.
    ///   - now: monotonic nanoseconds.
    /// - Returns: how many lines were left out before this one; `nil` when it is left out, too.
    mutating func next(_ hash: UInt64, _ rate: TokenRate, now: UInt64) -> UInt64? {
        // Made on first use: the operators' lane refuses no one.
        if places.isEmpty { places = Array(repeating: Place(), count: Self.count) }
        let index = Int(truncatingIfNeeded: hash >> 32) & (Self.count - 1)
        guard rate.take(from: &places[index].bucket, now: now) == nil else {
            places[index].leftOut &+= 1
            leftOut &+= 1
            return nil
        }
        defer { places[index].leftOut = 0 }
        return places[index].leftOut
    }

    /// Hands over how many lines were left out.
    mutating func take() -> UInt64 {
        defer { leftOut = 0 }
        return leftOut
    }
}
