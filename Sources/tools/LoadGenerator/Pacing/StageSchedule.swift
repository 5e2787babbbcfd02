/// When each request of an open loop is due, over stages with different rates.
///
/// The number of requests that are due until a moment is the integral of the rate. The n-th request
/// is due when that integral is n, which a quadratic equation solves for an evenly growing rate. So
/// no error adds up over the run.
struct StageSchedule: Equatable, Sendable {
    /// A stage, or the warm-up before the first one.
    private struct Part: Equatable, Sendable {
        /// Nanoseconds from the start of the run.
        let start: UInt64
        /// Seconds; infinite for a run that a count ends.
        let length: Double
        /// Requests a second at both ends.
        let first: Double
        let last: Double
        /// Requests that are due before it.
        let before: Double

        var slope: Double { first == last ? 0 : (last - first) / length }
        /// Requests that are due in it.
        var count: Double { dueCount(after: length) }

        /// Requests that are due in its first seconds.
        func dueCount(after seconds: Double) -> Double {
            let passed = min(max(seconds, 0), length)
            guard slope != 0 else { return first == 0 ? 0 : first * passed }
            return passed * (first + slope * passed / 2)
        }

        /// The seconds after which this number of requests was due.
        func second(of number: Double) -> Double {
            guard number > 0 else { return 0 }
            guard slope != 0 else { return number / first }
            // The usual formula loses digits where the slope is small.
            let root = (first * first + 2 * slope * number).squareRoot()
            return min(2 * number / (first + (root.isNaN ? 0 : root)), length)
        }
    }

    private var parts: [Part] = []
    private let hasWarmUp: Bool
    /// Nanoseconds from the start of the run to its end; `nil` where a count ends it.
    private(set) var end: UInt64? = 0

    /// The most stages: each has a histogram.
    static let stagesMax = 50

    /// Stages one after the other. The warm-up has the rate with which the first one begins.
    ///
    /// - Parameters:
    ///   - stages: at most ``stagesMax``.
    ///   - warmUp: nanoseconds before the first stage.
    init(_ stages: [LoadStage], warmUp: UInt64) {
        hasWarmUp = warmUp > 0
        if hasWarmUp {
            let rate = stages.first?.first ?? 0
            append(warmUp, from: rate, to: rate)
        }
        for (index, stage) in stages.enumerated() {
            let before = index > 0 ? stages[index - 1].last : 0
            append(stage.length.nanoseconds, from: stage.first ?? before, to: stage.last)
        }
    }

    /// One even rate.
    ///
    /// - length: nanoseconds, the warm-up among them; `nil` for no end.
    init(rate: Double, length: UInt64?) {
        hasWarmUp = false
        append(length, from: rate, to: rate)
    }

    private mutating func append(_ length: UInt64?, from first: Double, to last: Double) {
        guard let start = end else { return }
        let part = Part(
            start: start,
            length: length.map { Double($0) / 1e9 } ?? .infinity,
            first: first,
            last: last,
            before: parts.last.map { $0.before + $0.count } ?? 0
        )
        parts.append(part)
        let (next, overflow) = start.addingReportingOverflow(length ?? 0)
        end = length == nil ? nil : overflow ? .max : next
    }

    /// Nanoseconds from the start until a request is due; `UInt64.max` for one that never is.
    func due(_ number: Double) -> UInt64 {
        // Of a pause and the part after it, the later one has the next request.
        guard let part = parts.last(where: { $0.before <= number }) else { return .max }
        let inside = number - part.before
        guard inside < part.count else { return .max }
        let nanoseconds = part.second(of: inside) * 1e9
        guard nanoseconds < Double(Int64.max / 2) else { return .max }
        let (due, overflow) = part.start.addingReportingOverflow(UInt64(max(nanoseconds, 0)))
        return overflow ? .max : due
    }

    /// Requests that are due until this many nanoseconds from the start.
    func dueCount(by offset: UInt64) -> Double {
        guard let part = parts.last(where: { $0.start <= offset }) else { return 0 }
        return part.before + part.dueCount(after: Double(offset - part.start) / 1e9)
    }

    /// All requests; infinite where a count ends the run.
    var count: Double { parts.last.map { $0.before + $0.count } ?? 0 }

    /// The number of the stage, from 0.
    ///
    /// - offset: nanoseconds from the start of the run.
    /// - Returns: `nil` in the warm-up.
    func stage(at offset: UInt64) -> Int? {
        guard let place = parts.lastIndex(where: { $0.start <= offset }) else { return nil }
        let stage = place - (hasWarmUp ? 1 : 0)
        return stage < 0 ? nil : stage
    }
}
