/// A value that belongs to a lane, carried through other queues on its way back.
///
/// `@unchecked Sendable`: the value is reached only through ``value``, which checks first that the
/// caller runs on the value's own lane.
package struct LaneBound<Value>: @unchecked Sendable {
    private let carried: Value
    private let lane: Lane

    /// A value of this lane.
    package init(_ value: Value, on lane: Lane) {
        carried = value
        self.lane = lane
    }

    /// The value; traps unless the caller runs on the lane it belongs to.
    package var value: Value {
        lane.preconditionOnQueue()
        return carried
    }
}
