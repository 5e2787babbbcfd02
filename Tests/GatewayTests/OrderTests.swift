import Encodings
import EventLoops
import Expectations
import Rules
import Services
import Signatures
import Synchronization
import Testing

@testable import Gateway

/// Transcripts of orders: given, written, in force, delivered.
@Suite struct OrderTests {
    /// A disk that takes orders, or is full.
    private final class Disk: OrderStore {
        let isFull = Mutex(false)
        let saved = Transcript<RolloutOrders>()

        func save(
            _ orders: FleetOrders,
            inForce: RolloutOrders,
            _ changes: [FleetOrders.Change]
        ) throws(RolloutFile.Fault) {
            guard !isFull.withLock({ $0 }) else { throw RolloutFile.Fault(text: "no space left") }
            saved.add(inForce)
        }

        func lastChanges(atMost count: Int) -> [[UInt8]]? { nil }
    }

    private struct Stand {
        let control: ControlStand
        let disk = Disk()
        let rollouts: Rollouts
        let effects = Transcript<String>()

        init() throws {
            control = try ControlStand()
            rollouts = Rollouts(
                control.plane,
                OrdersAtStart(
                    orders: FleetOrders(),
                    inForce: RolloutOrders(),
                    store: disk,
                    fleet: nil,
                    unsaved: nil
                )
            )
            control.perform {
                rollouts.start(
                    Rollouts.Consumers(
                        loops: 1,
                        serve: { told in told() },
                        tookEffect: { [effects] in effects.add("\($0.change.to)") }
                    )
                )
            }
        }

        func result(_ request: RolloutRequest) async -> RolloutResult {
            await withCheckedContinuation { going in
                let call = RolloutRequest.Call(request, why: "test")
                rollouts.take(call, by: "uid 0") { going.resume(returning: $0) }
            }
        }

        var orders: RolloutOrders { control.perform { rollouts.orders } }
    }

    @Test func `an order is on disk before it is in force`() async throws {
        let stand = try Stand()
        guard
            case .changed(let change, .gateway, let areAllTold, let unsaved) =
                await stand.result(.order(.observe, rule: "orders"))
        else {
            Issue.record("the order was not taken")
            return
        }
        expectEqual(change.rule, "orders")
        #expect(areAllTold)
        expectEqual(unsaved, nil)
        expectEqual(stand.disk.saved.entries, [stand.orders])
        expectEqual(stand.effects.entries.count, 1)
    }

    @Test func `on a full disk what refuses fewer clients holds, and what refuses more does not`()
        async throws
    {
        let stand = try Stand()
        stand.disk.isFull.withLock { $0 = true }
        guard case .changed(_, _, _, let unsaved) = await stand.result(.observeAll) else {
            Issue.record("the order was not taken")
            return
        }
        expectEqual(unsaved, "no space left")
        expectEqual(stand.control.perform { stand.rollouts.unsaved }, "no space left")
        let before = stand.orders
        guard case .unsaved("no space left") = await stand.result(.resumeAll) else {
            Issue.record("an order that refuses more clients was taken")
            return
        }
        expectEqual(stand.orders, before)
    }

    @Test func `no order is taken about a rule that is none`() async throws {
        let stand = try Stand()
        guard
            case .impossible(.unknownRule) = await stand.result(.order(.observe, rule: "other"))
        else {
            Issue.record("an order about no rule was taken")
            return
        }
        expectEqual(stand.disk.saved.entries, [])
    }

    @Test func `while another process takes over, orders are refused`() async throws {
        let stand = try Stand()
        stand.control.perform { stand.control.plane.upgrading = .running }
        guard case .upgrading = await stand.result(.observeAll) else {
            Issue.record("an order was taken")
            return
        }
    }

    @Test func `a change is delivered when all event loops have it`() {
        var delivery = OrderDelivery()
        let told = Transcript<Bool>()
        let number = delivery.begin(loops: 2) { told.add($0) }
        let early = delivery.taken(number)
        #expect(early == nil)
        delivery.taken(number)?(true)
        delivery.end(number)?(false)
        expectEqual(told.entries, [true])
    }

    @Test func `a busy event loop does not keep the caller waiting`() {
        var delivery = OrderDelivery()
        let told = Transcript<Bool>()
        let number = delivery.begin(loops: 2) { told.add($0) }
        _ = delivery.taken(number)
        delivery.end(number)?(false)
        delivery.taken(number)?(true)
        expectEqual(told.entries, [false])
    }
}
