/// One operation that is measured.
struct Benchmark {
    let group: String
    let name: String
    /// How often it may run in a batch; for operations that use something up.
    var countMax = Int.max
    /// Makes ready for so many operations; neither timed nor counted.
    var prepare: (Int) -> Void = { _ in }
    /// The operation. The number counts from 0 in every batch; what is returned says that it went
    /// as it should, and keeps the compiler from leaving the work out.
    let run: (Int) -> Bool
}
