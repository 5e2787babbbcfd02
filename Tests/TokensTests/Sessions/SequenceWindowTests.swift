import RequestBinding
import Testing

@testable import Tokens

@Suite struct SequenceWindowTests {
    private func used(_ numbers: [UInt64], width: Int = 64) -> SequenceWindow {
        var window = SequenceWindow(width: width)
        for number in numbers { _ = window.use(SequenceNumber(known: number)) }
        return window
    }

    private func use(_ number: SequenceNumber, _ window: inout SequenceWindow) -> Bool {
        window.use(number)
    }

    @Test func `each number is good once, in any order`() {
        var window = SequenceWindow(width: 64)
        for number: UInt64 in [3, 1, 2, 40, 39, 64] {
            #expect(use(SequenceNumber(known: number), &window), "\(number)")
        }
        for number: UInt64 in [3, 1, 2, 40, 39, 64] {
            #expect(!use(SequenceNumber(known: number), &window), "\(number)")
        }
    }

    @Test func `a number is good as far below the highest as the window is wide, and no farther`() {
        for width in [64, 65, 255, 256, 4096] {
            let window = used([10_000], width: width)
            let edge = 10_000 - UInt64(width)
            #expect(window.admits(SequenceNumber(known: edge)), "\(width)")
            #expect(!window.admits(SequenceNumber(known: edge - 1)), "\(width)")
        }
    }

    @Test func `the first number may be any, and lower ones follow it`() {
        var window = SequenceWindow(width: 64)
        #expect(use(SequenceNumber(known: 65), &window))
        #expect(use(.first, &window))
        #expect(!use(.first, &window))
    }

    @Test func `the highest number of all is good once`() {
        var window = used([1])
        #expect(use(.max, &window))
        #expect(!use(.max, &window))
        #expect(!use(.first, &window))
        #expect(use(SequenceNumber(known: SequenceNumber.max.rawValue - 64), &window))
    }

    @Test func `a leap of any length forgets nothing that is still in the window`() {
        for leap: UInt64 in [1, 2, 63, 64, 65, 127, 128, 129, 1_000_000] {
            let window = used([500, 500 + leap])
            #expect(!window.admits(SequenceNumber(known: 500)), "\(leap)")
            let between = 500 + leap / 2
            guard leap > 1, leap - leap / 2 <= 64 else { continue }
            #expect(window.admits(SequenceNumber(known: between)), "\(leap)")
        }
    }

    @Test func `the ring agrees with a set of all numbers that were used`() {
        for width in [64, 100, 128, 4096] {
            var window = SequenceWindow(width: width)
            var seen: Set<UInt64> = []
            var highest: UInt64 = 0
            var state = UInt64(width)
            for _ in 0..<20_000 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                let spread = UInt64(width) * 3
                let number = max(1, highest + (state >> 33) % spread) - min(highest, spread / 2)
                guard let sequence = SequenceNumber(number) else { continue }
                let isFree = !seen.contains(number) && number + UInt64(width) >= highest
                if use(sequence, &window) != isFree {
                    Issue.record("\(number) of \(highest) at \(width)")
                }
                if isFree { seen.insert(number) }
                highest = max(highest, number)
            }
        }
    }
}
