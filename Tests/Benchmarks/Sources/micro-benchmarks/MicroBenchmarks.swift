import Glibc

/// Measures the steps of a request one by one, and prints a line for each: group, name, nanoseconds
/// and allocations, separated by tabs.
@main
enum MicroBenchmarks {
    private static let usage = """
        usage: micro-benchmarks [--quick] [--filter TEXT]

          --quick         fewer and shorter batches
          --filter TEXT   only those with this text in group or name

        """

    static func main() {
        var meter = Meter(batches: 31, batchNanoseconds: 10e6)
        var filter = ""
        var arguments = CommandLine.arguments.dropFirst()
        while let argument = arguments.popFirst() {
            switch argument {
            case "--quick": meter = Meter(batches: 11, batchNanoseconds: 2e6)
            case "--filter": filter = arguments.popFirst() ?? ""
            default:
                print(usage, terminator: "")
                exit(argument == "--help" ? 0 : 1)
            }
        }
        print("group\tname\tnanoseconds\tallocations")
        let groups = [
            HTTPBenchmarks.all, RuleBenchmarks.all, ProofBenchmarks.all, ChallengeBenchmarks.all,
            StoreBenchmarks.all,
        ]
        do throws(Meter.Failure) {
            for benchmark in groups.joined().lazy.flatMap({ $0() })
            where filter.isEmpty || "\(benchmark.group) \(benchmark.name)".contains(filter) {
                let reading = try meter.measure(benchmark)
                print(
                    benchmark.group,
                    benchmark.name,
                    rounded(reading.nanoseconds),
                    rounded(reading.allocations),
                    separator: "\t"
                )
                // A pipe would get them all at the end.
                fflush(nil)
            }
        } catch {
            let text = "micro-benchmarks: \(error)\n"
            write(STDERR_FILENO, text, text.utf8.count)
            exit(1)
        }
    }

    /// To a tenth.
    private static func rounded(_ value: Double) -> Double { (value * 10).rounded() / 10 }
}
