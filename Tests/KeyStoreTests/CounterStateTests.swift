import AppAttest
import Expectations
import KeyStore
import Testing

@Suite struct CounterStateTests {
    /// The rule in words: a set of all that was used.
    private struct Model {
        var used: Set<UInt32> = [0]

        func admits(_ counter: UInt32, _ rule: StoreCounterRule) -> Bool {
            let highest = used.max() ?? 0
            if counter > highest { return true }
            guard case .window(let width) = rule, !used.contains(counter) else { return false }
            return highest - counter <= UInt32(width)
        }
    }

    @Test(arguments: [UInt64(1), 2, 3, 4, 5, 6, 7, 8])
    func `any mix of rules admits what the model admits, and nothing twice`(seed: UInt64) {
        var random = seed &* 0x9E37_79B9_7F4A_7C15
        func next(_ limit: UInt64) -> UInt64 {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (random >> 33) % limit
        }
        var state = CounterState()
        var model = Model()
        for _ in 0..<5_000 {
            let highest = UInt64(state.highest.rawValue)
            let reach = next(20) == 0 ? highest + next(200) : highest + next(4)
            let counter = UInt32(reach < 70 ? next(reach + 1) : reach - next(70))
            let width = Int(next(64)) + 1
            let rule: StoreCounterRule = next(3) == 0 ? .strict : .window(width)
            let isAdmitted = state.admits(SignCounter(rawValue: counter), rule)
            expectEqual(isAdmitted, model.admits(counter, rule))
            guard isAdmitted else { continue }
            state.use(SignCounter(rawValue: counter))
            model.used.insert(counter)
        }
        expectEqual(state.highest.rawValue, model.used.max())
    }

    @Test func `merging is the same in any order and repeated, and forgets nothing`() {
        func state(_ counters: [UInt32]) -> CounterState {
            counters.reduce(into: CounterState()) { $0.use(SignCounter(rawValue: $1)) }
        }
        let parts = [[3, 9, 5], [64, 1], [70, 66, 9], [9], [134], [135, 71]].map(state)
        for left in parts {
            for right in parts {
                var one = left
                one.merge(right)
                var other = right
                other.merge(left)
                expectEqual(one, other)
                var again = one
                again.merge(left)
                expectEqual(again, one)
                for counter in UInt32(0)...140 {
                    let counter = SignCounter(rawValue: counter)
                    for part in [left, right] where !part.admits(counter, .window(64)) {
                        #expect(!one.admits(counter, .window(64)))
                    }
                }
            }
        }
    }

    @Test(
        arguments: [
            (1, true), (64, true), (65, true), (1_000, true), (.max, true), (0, false), (-5, false),
        ] as [(Int, Bool)]
    )
    func `a width beyond 1…64 is taken as the nearest`(width: Int, reachesFar: Bool) {
        var state = CounterState()
        state.use(SignCounter(rawValue: 1_000))
        #expect(state.admits(SignCounter(rawValue: 999), .window(width)))
        #expect(!state.admits(SignCounter(rawValue: 935), .window(width)))
        expectEqual(state.admits(SignCounter(rawValue: 936), .window(width)), width >= 64)
    }

    @Test func `a state whose past is not known admits nothing below its highest`() {
        let state = CounterState(highest: SignCounter(rawValue: 100), seen: .max)
        for counter in UInt32(0)...100 {
            #expect(!state.admits(SignCounter(rawValue: counter), .window(64)))
        }
        #expect(state.admits(SignCounter(rawValue: 101), .window(64)))
    }
}
