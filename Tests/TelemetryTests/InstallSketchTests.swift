import Expectations
import Telemetry
import TestSupport
import Testing

@Suite struct InstallSketchTests {
    /// Even hash values, the same in each run of the tests.
    private func hashes(_ count: Int, seed: UInt64 = 7) -> [Int] {
        var generator = SeededGenerator(seed: seed)
        return (0..<count).map { _ in Int(truncatingIfNeeded: generator.next()) }
    }

    private func sketch(_ hashes: some Sequence<Int>, bits: Int = 10) -> InstallSketch {
        var sketch = InstallSketch(bits: bits)
        for hash in hashes { sketch.add(hash: hash) }
        return sketch
    }

    @Test(arguments: [1, 2, 5, 10, 20, 50, 100])
    func `up to a hundred installs are counted within one in fifteen`(count: Int) {
        for seed in 1...20 as ClosedRange<UInt64> {
            let estimate = sketch(hashes(count, seed: seed)).count
            #expect(abs(estimate - count) <= max(1, count / 15), "seed \(seed): \(estimate)")
        }
    }

    /// Four, not three: between 2.5 and 5 times the registers the estimate is known to be too high
    /// by a little.
    @Test(arguments: [300, 1000, 2300, 2600, 3000, 10_000, 100_000, 300_000], [8, 10, 12])
    func `many installs are counted within four standard deviations`(count: Int, bits: Int) {
        let allowed = 4 * 1.04 / Double(1 << bits).squareRoot()
        for seed in 1...5 as ClosedRange<UInt64> {
            let estimate = sketch(hashes(count, seed: seed), bits: bits).count
            let error = Double(estimate - count) / Double(count)
            #expect(abs(error) <= allowed, "seed \(seed): \(estimate)")
        }
    }

    @Test func `an install that comes again is counted once`() {
        let some = hashes(200)
        var sketch = sketch(some)
        let before = sketch.count
        for _ in 0..<50 { for hash in some { sketch.add(hash: hash) } }
        expectEqual(sketch.count, before)
    }

    @Test func `the sketches of loops merge to the sketch of all`() {
        let all = hashes(5000)
        var merged = InstallSketch()
        // The third part of the installs is seen by both event loops.
        merged.merge(sketch(all[..<3000]))
        merged.merge(sketch(all[1500...]))
        merged.merge(InstallSketch())
        expectEqual(merged, sketch(all))
    }

    @Test func `an empty sketch counts nothing, also when it is cleared`() {
        var sketch = sketch(hashes(500))
        #expect(!sketch.isEmpty)
        sketch.clear()
        #expect(sketch == InstallSketch() && sketch.isEmpty && sketch.count == 0)
    }

    @Test func `no hash value stops it, nor makes its estimate overflow`() {
        for bits in InstallSketch.bitsRange {
            var sketch = InstallSketch(bits: bits)
            for place in 0..<(1 << bits) { sketch.add(hash: place << (64 - bits)) }
            for hash in [0, -1, .min, .max] { sketch.add(hash: hash) }
            #expect(sketch.count > 1 << 40)
        }
    }

    @Test func `names that are counted by their hash are counted as they are many`() {
        let estimate = sketch((0..<800).map { "install \($0)".hashValue }).count
        #expect((600...1000).contains(estimate))
    }
}
