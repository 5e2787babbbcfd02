import Lanes

/// A lane with what runs on it, for those on other queues.
final class LaneUnit: Sendable {
    private let lane: Lane
    private let carried: LaneBound<LoadLane>

    /// Starts a lane.
    ///
    /// - `tell`: called on the lane's queue.
    init(
        _ plan: LoadPlan,
        number: Int,
        tell: @escaping @Sendable (LaneNews) -> Void
    ) throws(LoadError) {
        do throws(SocketError) {
            lane = try Lane(number: number)
        } catch {
            throw LoadError("\(error)")
        }
        carried = LaneBound(LoadLane(plan, number: number, on: lane, tell: tell), on: lane)
        lane.start()
    }

    deinit { lane.stop() }

    /// Has something done on the lane.
    func tell(_ body: @escaping @Sendable (LoadLane) -> Void) {
        lane.perform { [carried] in body(carried.value) }
    }

    /// Asks for something that is known on the lane.
    func ask<Value: Sendable>(_ body: @escaping @Sendable (LoadLane) -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            tell { continuation.resume(returning: body($0)) }
        }
    }
}
