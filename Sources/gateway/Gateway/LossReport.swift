/// Decides which losses of a log are reported: that they begin, and how many there were. A reader
/// that is a little too slow causes many, which are reported together.
struct LossReport {
    enum Notice: Equatable {
        case none
        case began
        case ended(lines: UInt64)
    }

    /// How long nothing is reported after a notice: ten seconds.
    static let quietNanoseconds: UInt64 = 10_000_000_000

    /// Lines that were dropped and not reported.
    private var untold: UInt64 = 0
    private var isBeginTold = false
    private var toldAt: UInt64?

    /// Lines were dropped.
    mutating func lost(_ lines: UInt64, now: UInt64) -> Notice {
        untold &+= lines
        guard !isBeginTold, !isQuiet(now) else { return .none }
        isBeginTold = true
        toldAt = now
        return .began
    }

    /// Lines were written.
    mutating func wrote(now: UInt64) -> Notice {
        guard untold > 0, isBeginTold || !isQuiet(now) else { return .none }
        defer { untold = 0 }
        isBeginTold = false
        toldAt = now
        return .ended(lines: untold)
    }

    private func isQuiet(_ now: UInt64) -> Bool {
        toldAt.map { now &- $0 < Self.quietNanoseconds } ?? false
    }
}
