import EventLoops

/// A value that lives on an event loop of its own, for code on other queues.
final class OnLoop<Value>: Sendable {
    private let loop: EventLoop
    private let carried: LoopBound<Value>

    /// Starts an event loop.
    init(number: Int, _ make: (EventLoop) -> Value) throws(LoadError) {
        do throws(SocketError) {
            loop = try EventLoop(number: number)
        } catch {
            throw LoadError("\(error)")
        }
        carried = LoopBound(make(loop), on: loop)
        loop.start()
    }

    deinit { loop.stop() }

    /// Has a closure run on the event loop.
    func tell(_ body: @escaping @Sendable (Value) -> Void) {
        loop.perform { [carried] in body(carried.value) }
    }

    /// Returns a value that a closure computes on the event loop.
    func ask<Answer: Sendable>(_ body: @escaping @Sendable (Value) -> Answer) async -> Answer {
        await withCheckedContinuation { continuation in
            tell { continuation.resume(returning: body($0)) }
        }
    }
}
