internal import DeviceKey
internal import Encodings
internal import Synchronization

/// Keys that the journal does not have, remembered for a moment, so that a client which repeats its
/// request costs one query. A key that another gateway enrols meanwhile is found when the moment is
/// over.
struct UnknownKeys {
    /// The most keys that are remembered. Beyond it, all are forgotten: each then costs a query.
    static let countMax = 16_384
    static let lifetime = Duration.seconds(1)

    private var ends: [KeyID: ContinuousClock.Instant] = [:]

    func contains(_ keyID: KeyID, now: ContinuousClock.Instant = .now) -> Bool {
        ends[keyID].map { now < $0 } ?? false
    }

    mutating func insert(_ keyID: KeyID, now: ContinuousClock.Instant = .now) {
        if ends.count >= Self.countMax { ends.removeAll(keepingCapacity: true) }
        ends[keyID] = now + Self.lifetime
    }

    mutating func remove(_ keyID: KeyID) { ends[keyID] = nil }

    /// Forgets all: another process has changed keys.
    mutating func removeAll() { ends.removeAll(keepingCapacity: true) }
}

/// Keys that were read from a store that another process still uses. They are for the table of the
/// process that takes over the store, so that clients need not wait until all keys are read.
package final class KeysAhead: Sendable {
    /// The most keys that may be left to read while clients wait.
    private static let littleCount = 256
    /// Under load there is always something new. The rest after the last pass is read while clients
    /// wait.
    private static let passesMax = 8

    let apps = AppNumbers()
    let shards = KeyTable.emptyShards()

    /// Reads all keys, then the new ones again and again, until few are left.
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

/// When the changes of others were last read, and for how long they count as known.
///
/// It uses the continuous clock, which advances while the process is stopped and while the machine
/// sleeps.
struct ReadMoment: ~Copyable, Sendable {
    private let lifetime: Duration?
    private let clock: @Sendable () -> ContinuousClock.Instant
    private let start: ContinuousClock.Instant
    /// Nanoseconds after the start.
    private let last: Atomic<Int64>

    /// - lifetime: `nil` if the last reading counts until reading fails.
    init(lifetime: Duration?, clock: @escaping @Sendable () -> ContinuousClock.Instant) {
        self.lifetime = lifetime
        self.clock = clock
        start = clock()
        last = Atomic(0)
    }

    /// The moment before a reading, for ``note(_:)``: a change during the reading may be missed.
    var now: ContinuousClock.Instant { clock() }

    /// All changes before this moment are known.
    func note(_ moment: ContinuousClock.Instant) {
        _ = last.max(Int64((moment - start).nanosecondCount), ordering: .releasing)
    }

    /// Whether the known changes count now.
    var counts: Bool {
        guard let lifetime else { return true }
        let age = Int64((clock() - start).nanosecondCount) - last.load(ordering: .acquiring)
        return age <= Int64(lifetime.nanosecondCount)
    }
}
