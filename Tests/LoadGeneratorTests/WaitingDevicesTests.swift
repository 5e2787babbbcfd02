import Expectations
import Testing

@testable import LoadGenerator

@Suite struct WaitingDevicesTests {
    @Test func `devices come in the order of their times, and none too early`() {
        var waiting = WaitingDevices()
        for (device, time) in [(1, 30), (2, 10), (3, 20), (4, 10)] as [(Int, UInt64)] {
            waiting.add(device, at: time)
        }
        expectEqual(waiting.nextAt, 10)
        expectEqual(waiting.take(now: 9), nil)
        expectEqual(Set([waiting.take(now: 10), waiting.take(now: 10)]), [2, 4])
        expectEqual(waiting.take(now: 10), nil)
        expectEqual(waiting.nextAt, 20)
        expectEqual(waiting.take(now: 99), 3)
        expectEqual(waiting.take(now: 99), 1)
        expectEqual(waiting.take(now: 99), nil)
        #expect(waiting.isEmpty)
    }
}
