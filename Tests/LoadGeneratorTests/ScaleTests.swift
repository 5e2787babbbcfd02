import Testing

@testable import LoadGenerator

@Suite struct ScaleTests {
    @Test(arguments: [(1.0, 0.0), (10, 1), (1_000_000, 6), (0.001, -3), (2, 0.301_029_995_66)])
    func `a logarithm is right to nine places`(value: Double, logarithm: Double) {
        #expect(abs(Scale.log10(value) - logarithm) < 1e-9)
    }

    @Test func `values find their places, upside down and on a logarithmic axis`() {
        let plain = Scale(0...10, to: 100...200)
        #expect([-1, 0, 5, 10, 99].map(plain.place) == [100, 100, 150, 200, 200])
        let flipped = Scale(0...10, to: 100...200, isFlipped: true)
        #expect([0, 2.5, 10].map(flipped.place) == [200, 175, 100])
        let logarithmic = Scale(1...10_000, to: 0...400, isLogarithmic: true)
        #expect([1, 100, 10_000].map { logarithmic.place($0).rounded() } == [0, 200, 400])
    }

    @Test func `ticks are round numbers inside the axis`() {
        #expect(Scale(0...47, to: 0...1).ticks(about: 5) == [0, 10, 20, 30, 40])
        #expect(Scale(0...1, to: 0...1).ticks(about: 2) == [0, 0.5, 1])
        #expect(Scale(3...3, to: 0...1).ticks(about: 5) == [3])
        let wide = Scale(50...2_000_000, to: 0...1, isLogarithmic: true)
        #expect(wide.ticks(about: 6) == [100, 1_000, 10_000, 100_000, 1_000_000])
        let narrow = Scale(150...1_600, to: 0...1, isLogarithmic: true)
        #expect(narrow.ticks(about: 8) == [200, 500, 1_000])
    }
}
