import Dispatch
import Testing

@testable import Lanes

/// What belongs to a lane is used on that lane only. Each body runs in a process of its own, which
/// ends where the check is.
@Suite struct LaneConfinementTests {
    @Test func `a value carried from one lane is not handed out on another`() async {
        await #expect(processExitsWith: .failure) {
            let lanes = try [Lane(number: 0), Lane(number: 1)]
            for lane in lanes { lane.start() }
            let carried = LaneBound(7, on: lanes[0])
            let passed = DispatchSemaphore(value: 0)
            lanes[1].perform {
                _ = carried.value
                passed.signal()
            }
            _ = passed.wait(timeout: .now() + 60)
        }
    }

    @Test func `a value carried from a lane is handed out on it`() async {
        await #expect(processExitsWith: .success) {
            let lane = try Lane(number: 0)
            lane.start()
            let carried = LaneBound(7, on: lane)
            let passed = DispatchSemaphore(value: 0)
            lane.perform {
                if carried.value == 7 { passed.signal() }
            }
            guard passed.wait(timeout: .now() + 60) == .success else { fatalError("not passed") }
        }
    }

    @Test func `an endpoint is not registered from another queue`() async {
        await #expect(processExitsWith: .failure) {
            let lane = try Lane(number: 0)
            let address = try #require(SocketAddress(ip: "127.0.0.1", port: 0))
            let listener = Listener(descriptor: try Listener.open(address), on: lane)
            try lane.register(listener)
        }
    }

    @Test func `an endpoint is not resumed from another queue`() async {
        await #expect(processExitsWith: .failure) {
            let lane = try Lane(number: 0)
            let address = try #require(SocketAddress(ip: "127.0.0.1", port: 0))
            lane.resume(Listener(descriptor: try Listener.open(address), on: lane))
        }
    }
}
