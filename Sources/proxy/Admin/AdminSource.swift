/// Knows how the gateway stands; asked by the ``AdminServer``.
package protocol AdminSource: Sendable {
    /// Gathers a snapshot and hands it over, once, on any queue.
    ///
    /// Called on the admin lane, never again before the last call has completed: it may ask every
    /// lane for a copy of its tally, but must not wait for them. A call that never completes makes
    /// every page but `/healthz` answer 503 from then on.
    func gather(_ completion: @escaping @Sendable (AdminSnapshot) -> Void)
}
