import CAllocations
import Glibc

/// Measures an operation: CPU time of its thread, and what it asks the allocator for.
///
/// Time is the median of batches, each long enough for the clock, so that what else the machine
/// does moves it little; waiting is not in it.
struct Meter {
    /// What was measured of one operation.
    struct Reading {
        let nanoseconds: Double
        let allocations: Double
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let batches: Int
    let batchNanoseconds: Double

    func measure(_ benchmark: Benchmark) throws(Failure) -> Reading {
        // Doubled until a batch is long enough; that warms up, too.
        var count = 1
        while count < benchmark.countMax {
            guard try batch(benchmark, count).nanoseconds < batchNanoseconds else { break }
            count = min(count * 2, benchmark.countMax)
        }
        var times: [Double] = []
        var allocations: [Double] = []
        for _ in 0..<batches {
            let reading = try batch(benchmark, count)
            times.append(reading.nanoseconds / Double(count))
            allocations.append(reading.allocations / Double(count))
        }
        return Reading(nanoseconds: median(times), allocations: median(allocations))
    }

    private func batch(_ benchmark: Benchmark, _ count: Int) throws(Failure) -> Reading {
        benchmark.prepare(count)
        var done = 0
        let allocations = callocations_count()
        let start = Self.now
        for number in 0..<count where benchmark.run(number) { done += 1 }
        let end = Self.now
        let allocated = callocations_count() - allocations
        guard done == count else {
            let text = "\(benchmark.group), \(benchmark.name): \(count - done) of \(count) failed"
            throw Failure(description: text)
        }
        return Reading(nanoseconds: end - start, allocations: Double(allocated))
    }

    private func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    /// CPU time of this thread.
    private static var now: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
    }
}
