import Expectations
import Services
import Synchronization
import Testing

@testable import Proxy

@Suite struct ProbeResponderTests {
    /// Answers at once, and counts how often it is asked.
    private final class Source: SnapshotSource {
        let asked = Mutex(0)
        let isThere: Bool

        init(isThere: Bool = true) { self.isThere = isThere }

        func ask(_ completion: @escaping @Sendable (AdminSnapshot?) -> Void) {
            asked.withLock { $0 += 1 }
            completion(isThere ? .sample() : nil)
        }
    }

    private final class Clock: Sendable {
        let now = Mutex<UInt64>(5)
    }

    private static func answer(_ responder: ProbeResponder) -> Readiness? {
        let found = Mutex<Readiness?>(nil)
        responder.askReadiness { readiness in found.withLock { $0 = readiness } }
        return found.withLock { $0 }
    }

    @Test func `a flood of probes asks the loops once a second`() {
        let (source, clock) = (Source(), Clock())
        let responder = ProbeResponder { clock.now.withLock { $0 } }
        expectEqual(Self.answer(responder), .unready(.gatherTimeout))
        responder.ask(source)
        let first = Self.answer(responder)
        for _ in 0..<1_000 { expectEqual(Self.answer(responder), first) }
        expectEqual(source.asked.withLock { $0 }, 1)
        clock.now.withLock { $0 += ProbeResponder.age - 1 }
        _ = Self.answer(responder)
        expectEqual(source.asked.withLock { $0 }, 1)
        clock.now.withLock { $0 += 1 }
        _ = Self.answer(responder)
        expectEqual(source.asked.withLock { $0 }, 2)
    }

    @Test func `loops that don't answer in time are asked again, and are not ready`() {
        let source = Source(isThere: false)
        let responder = ProbeResponder { 5 }
        responder.ask(source)
        for _ in 0..<3 { expectEqual(Self.answer(responder), .unready(.gatherTimeout)) }
        expectEqual(source.asked.withLock { $0 }, 3)
    }
}
