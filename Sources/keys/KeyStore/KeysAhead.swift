/// Keys that were read from a store that another process still uses: for the table of the process
/// that takes the store over, so that clients need not wait until all keys are read.
package final class KeysAhead: Sendable {
    /// What may be left to be read while clients wait.
    private static let littleCount = 256
    /// Under load there is always something new. What the last pass leaves is read while clients
    /// wait.
    private static let passesMax = 8

    let apps = AppNumbers()
    let shards = KeyTable.emptyShards()

    /// Reads all keys, and then again what is new, until that is little.
    ///
    /// - Throws: when the source can't be read.
    package init(_ source: any KeySource) throws(JournalError) {
        for _ in 0..<Self.passesMax {
            var count = 0
            _ = try source.load(apps: apps) { rows in
                count += rows.count
                for row in rows { KeyTable.apply(row, .journal, to: shards) }
            }
            guard count > Self.littleCount else { return }
        }
    }
}
