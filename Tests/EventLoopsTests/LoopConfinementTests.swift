import Dispatch
import Testing

@testable import EventLoops

/// What belongs to an event loop is used on that event loop only. Each body runs in a process of
/// its own, which ends where the check is.
@Suite struct LoopConfinementTests {
    @Test func `a value carried from one loop is not handed out on another`() async {
        await #expect(processExitsWith: .failure) {
            let loops = try [EventLoop(number: 0), EventLoop(number: 1)]
            for loop in loops { loop.start() }
            let carried = LoopBound(7, on: loops[0])
            let passed = DispatchSemaphore(value: 0)
            loops[1].perform {
                _ = carried.value
                passed.signal()
            }
            _ = passed.wait(timeout: .now() + 60)
        }
    }

    @Test func `a value carried from a loop is handed out on it`() async {
        await #expect(processExitsWith: .success) {
            let loop = try EventLoop(number: 0)
            loop.start()
            let carried = LoopBound(7, on: loop)
            let passed = DispatchSemaphore(value: 0)
            loop.perform {
                if carried.value == 7 { passed.signal() }
            }
            guard passed.wait(timeout: .now() + 60) == .success else { fatalError("not passed") }
        }
    }

    @Test func `an endpoint is not registered from another queue`() async {
        await #expect(processExitsWith: .failure) {
            let loop = try EventLoop(number: 0)
            let address = try #require(SocketAddress(ip: "127.0.0.1", port: 0))
            let listener = Listener(descriptor: try Listener.open(address), on: loop)
            try loop.register(listener)
        }
    }

    @Test func `an endpoint is not resumed from another queue`() async {
        await #expect(processExitsWith: .failure) {
            let loop = try EventLoop(number: 0)
            let address = try #require(SocketAddress(ip: "127.0.0.1", port: 0))
            loop.resume(Listener(descriptor: try Listener.open(address), on: loop))
        }
    }
}
