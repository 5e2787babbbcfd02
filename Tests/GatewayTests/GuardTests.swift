import Expectations
import Proxy
import Rules
import Services
import Synchronization
import Telemetry
import Testing

@testable import Gateway

/// Transcripts of guards: counts of event loops, and the order that follows.
@Suite struct GuardTests {
    /// One event loop that has seen some installs.
    private struct Loop: GuardedLoops {
        let refused: Range<Int>
        let loopCount = 1

        func takeGuardCounts(_ each: @escaping @Sendable ([GuardCounts.Entry]) -> Void) {
            each([
                GuardCounts.Entry(
                    rule: "orders",
                    passed: Self.sketch(0..<200),
                    refused: Self.sketch(refused),
                    broken: Self.sketch(refused)
                )
            ])
        }

        func hashInstalls(by hash: InstallHash) {}

        private static func sketch(_ installs: Range<Int>) -> InstallSketch {
            var sketch = InstallSketch()
            for install in installs {
                let word = UInt64(truncatingIfNeeded: install + 1) &* 0x9E37_79B9_7F4A_7C15
                sketch.add(hash: Int(truncatingIfNeeded: word ^ word >> 29))
            }
            return sketch
        }
    }

    /// Orders that are taken and change nothing.
    private final class Orders: OrderTaking {
        let isBusy: Bool
        let given = Transcript<WaitingOrder>()
        let orders = RolloutOrders()

        init(isBusy: Bool = false) { self.isBusy = isBusy }

        func add(_ order: WaitingOrder) { given.add(order) }
    }

    /// The orders that follow once an event loop was asked.
    private func given(_ refused: Range<Int>, isBusy: Bool = false) throws -> [WaitingOrder] {
        let control = try ControlStand()
        let orders = Orders(isBusy: isBusy)
        let guards = Guards(control.plane, orders, loops: Loop(refused: refused))
        control.perform { guards.start() }
        // The counts come with the next turn of the queue.
        control.perform {}
        return orders.given.entries
    }

    @Test func `a rule that refuses too many installs is ordered to observe`() throws {
        let orders = try given(0..<100)
        let order = try #require(orders.first)
        expectEqual(orders.count, 1)
        expectEqual(order.by, RolloutNote.guardName)
        expectEqual(order.call.request, .order(.observe, rule: "orders"))
        #expect(order.call.why.contains("installs refused at 100%"), "\(order.call.why)")
    }

    @Test func `a rule that refuses few installs stays`() throws {
        #expect(try given(0..<2).isEmpty)
    }

    @Test func `no guard falls while another order is being saved`() throws {
        #expect(try given(0..<100, isBusy: true).isEmpty)
    }
}
