/// A value that belongs to a lane, carried through other queues on its way back.
///
/// `@unchecked Sendable`: the value is reached only through ``value(on:)``, which checks the queue
/// first.
package struct LaneBound<Value>: @unchecked Sendable {
    private let carried: Value

    package init(_ value: Value) { carried = value }

    /// The value; traps unless the caller runs on the lane.
    package func value(on lane: Lane) -> Value {
        lane.preconditionOnQueue()
        return carried
    }
}
