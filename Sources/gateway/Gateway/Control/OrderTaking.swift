import Rules
import Services

/// An order that waits to be decided.
struct WaitingOrder {
    let call: RolloutRequest.Call
    let by: String
    let done: @Sendable (RolloutResult) -> Void
}

/// The orders as guards and the fleet see them: what is in force, and a place to give one.
protocol OrderTaking: Sendable {
    /// The orders in force.
    var orders: RolloutOrders { get }
    /// Whether an order waits or is being saved, or none is accepted.
    var isBusy: Bool { get }
    func add(_ order: WaitingOrder)
}
