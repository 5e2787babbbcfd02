/// Gathers what operators are told.
package protocol AdminSource: Sendable {
    /// Gathers a snapshot and hands it over, once, on any thread.
    ///
    /// Never called again before the last call has completed. It may ask every lane for a copy of
    /// its tally, but must not wait for them. A call that never completes makes every page but
    /// `/healthz` answer 503 from then on.
    func gather(_ completion: @escaping @Sendable (AdminSnapshot) -> Void)
}
