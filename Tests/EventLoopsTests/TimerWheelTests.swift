import EventLoops
import Expectations
import Testing

@Suite struct TimerWheelTests {
    private func due(_ wheel: inout TimerWheel, at tick: UInt64) -> [UInt64] {
        var due: [TimerWheel.Entry] = []
        wheel.advance(to: tick, into: &due)
        return due.map(\.token)
    }

    @Test func `a thing comes out at its tick and not before`() {
        var wheel = TimerWheel(now: 100)
        expectEqual(wheel.file(1, at: 103), 103)
        #expect(due(&wheel, at: 102).isEmpty)
        expectEqual(due(&wheel, at: 103), [1])
        expectEqual(wheel.count, 0)
    }

    @Test func `a tick that is over is the next one`() {
        var wheel = TimerWheel(now: 100)
        expectEqual(wheel.file(1, at: 5), 101)
        expectEqual(due(&wheel, at: 101), [1])
    }

    @Test func `a deadline beyond one turn comes out early, to be filed again`() {
        var wheel = TimerWheel(now: 0)
        expectEqual(wheel.file(1, at: 5000), TimerWheel.span)
        expectEqual(due(&wheel, at: TimerWheel.span), [1])
    }

    @Test func `a long pause brings everything out once`() {
        var wheel = TimerWheel(now: 0)
        for token in UInt64(1)...50 { _ = wheel.file(token, at: token) }
        expectEqual(due(&wheel, at: 1_000_000).sorted(), Array(1...50))
        #expect(due(&wheel, at: 2_000_000).isEmpty)
    }
}
