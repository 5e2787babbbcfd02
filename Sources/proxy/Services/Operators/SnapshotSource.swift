/// Knows how the gateway stands.
package protocol SnapshotSource: Sendable {
    /// Gathers a snapshot and hands it over, once, on any thread; `nil` when that takes too long.
    func ask(_ completion: @escaping @Sendable (AdminSnapshot?) -> Void)
}
