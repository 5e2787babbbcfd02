import Expectations
import Services
import Synchronization
import Testing

@testable import Proxy

@Suite struct SnapshotCollectorTests {
    /// A collector whose timers the test lets run out, and what those who asked have got: the
    /// generation of the snapshot, or `nil` for none in time.
    private final class Stand: Sendable {
        let source = HangingSource()
        let timers = Mutex<[@Sendable () -> Void]>([])
        let got = Mutex<[String: UInt64?]>([:])
        let collector = Mutex<SnapshotCollector?>(nil)

        init() {
            let collector = SnapshotCollector(source) { [unowned self] timer in
                timers.withLock { $0.append(timer) }
            }
            self.collector.withLock { $0 = collector }
        }

        func ask(_ name: String) {
            collector.withLock { $0 }?.ask { snapshot in
                self.got.withLock { $0[name] = .some(snapshot?.configuration.generation) }
            }
        }

        /// The gathering of this number ends.
        func end(_ call: Int, generation: UInt64) {
            source.calls.withLock { $0[call] }(.sample(generation: generation))
        }

        func runOut(_ number: Int) { timers.withLock { $0[number] }() }

        var calls: Int { source.calls.withLock { $0.count } }

        func letGo() { source.calls.withLock { $0 = [] } }
    }

    @Test func `requests that come while a gathering runs share the next one`() {
        let stand = Stand()
        defer { stand.letGo() }
        for name in ["one", "two", "three"] { stand.ask(name) }
        expectEqual(stand.calls, 1)
        stand.end(0, generation: 1)
        expectEqual(stand.calls, 2)
        stand.end(1, generation: 2)
        expectEqual(stand.got.withLock { $0 }, ["one": 1, "two": 2, "three": 2])
    }

    @Test func `a source that hangs is asked once, and each request is answered in time`() {
        let stand = Stand()
        defer { stand.letGo() }
        stand.ask("one")
        stand.ask("two")
        stand.runOut(0)
        stand.runOut(1)
        expectEqual(stand.got.withLock { $0 }, ["one": nil, "two": nil])
        expectEqual(stand.calls, 1)
    }

    @Test func `a gathering that ends late serves the requests that still wait`() {
        let stand = Stand()
        defer { stand.letGo() }
        stand.ask("one")
        stand.runOut(0)
        stand.ask("two")
        stand.end(0, generation: 1)
        stand.end(1, generation: 2)
        expectEqual(stand.got.withLock { $0 }, ["one": nil, "two": 2])
        // Its time runs out when it has been answered.
        stand.runOut(1)
        expectEqual(stand.got.withLock { $0["two"] }, .some(2))
    }
}
