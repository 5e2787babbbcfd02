/// The endpoints of a lane, each in a slot, and the tokens by which epoll and the timer wheel name
/// them.
///
/// A token is a slot's number and, above it, its generation. An event that arrives late for an
/// endpoint that was closed has an old generation, so it reaches no other endpoint in that slot.
final class EndpointTable {
    private struct Slot {
        var endpoint: Endpoint?
        var generation: UInt32 = 0
    }

    @exclusivity(unchecked) private var slots: [Slot] = []
    @exclusivity(unchecked) private var free: [UInt32] = []

    /// A token for an endpoint that is still to be put under it.
    func reserve() -> UInt64 {
        let slot: UInt32
        if let last = free.popLast() {
            slot = last
        } else {
            slot = UInt32(slots.count)
            slots.append(Slot())
        }
        slots[Int(slot)].generation &+= 1
        return UInt64(slots[Int(slot)].generation) << 32 | UInt64(slot)
    }

    func put(_ endpoint: Endpoint, under token: UInt64) {
        slots[Self.slot(token)].endpoint = endpoint
    }

    /// Empties a slot, which is not used again before ``release(_:)``.
    ///
    /// - Returns: the endpoint that was in it.
    @discardableResult
    func remove(_ token: UInt64) -> Endpoint? { slots[Self.slot(token)].endpoint.take() }

    /// Makes an empty slot available again.
    func release(_ slot: Int) { free.append(UInt32(slot)) }

    /// The endpoint under a token; `nil` when it was closed.
    func endpoint(_ token: UInt64) -> Endpoint? {
        let slot = Self.slot(token)
        guard slot < slots.count, slots[slot].generation == UInt32(token >> 32) else { return nil }
        return slots[slot].endpoint
    }

    /// The endpoint in a slot that was reserved; `nil` when it is empty.
    func endpoint(in slot: Int) -> Endpoint? { slots[slot].endpoint }

    /// The number of a token's slot.
    static func slot(_ token: UInt64) -> Int { Int(UInt32(truncatingIfNeeded: token)) }
}
