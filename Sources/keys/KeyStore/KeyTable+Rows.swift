internal import DeviceKey
internal import Synchronization

// What the journal says of keys.
extension KeyTable {
    /// Where a row comes from.
    enum RowSource {
        /// Read because it was asked for: on the writer's queue, behind a commit.
        case enrolled
        /// Read from the journal. Such rows are read one after the other, so the last one is right.
        case journal
    }

    func apply(_ row: KeyRow, _ source: RowSource) {
        Self.apply(row, source, to: shards, keepsAhead: committer.isDegraded)
    }

    /// Takes over what the journal says of a key. Counters only go one way, so that a row that was
    /// read before a change here undoes nothing. For the same reason what an enrolment has read
    /// says nothing about the standing of a key that is here.
    ///
    /// - `keepsAhead`: whether keys stay whose uses the journal may not know of.
    static func apply(
        _ row: KeyRow,
        _ source: RowSource,
        to shards: [Shard],
        keepsAhead: Bool = true
    ) {
        let place = place(of: row.keyID)
        shards[place.shard].keys.withLock { keys in
            guard let number = keys.find(row.keyID, hash: place.hash) else {
                return add(row, source, to: &keys, place.hash, keepsAhead: keepsAhead)
            }
            keys[number].counters.merge(row.counters)
            if row.anchor == .held { keys[number].hold() }
            if source == .journal { keys.set(row.standing, of: number) }
            if row.risk.isNewer(than: keys[number].risk) { keys[number].risk = row.risk }
            guard let context = row.context, keys[number].standing != .deleted else { return }
            keys.keep(context, for: number)
        }
    }

    private static func add(
        _ row: KeyRow,
        _ source: RowSource,
        to keys: inout KeyShard,
        _ hash: UInt32,
        keepsAhead: Bool
    ) {
        guard row.standing != .deleted else { return }
        let entry = KeyEntry(row)
        var number: Int?
        if keys.isFull {
            // What nobody has asked for here takes no place from another key.
            guard source == .enrolled else { return }
            number = keys.replace(with: entry, hash: hash, keepsAhead: keepsAhead) {
                place(of: $0).hash
            }
        }
        if number == nil {
            number = keys.count
            keys.insert(entry, hash: hash) { place(of: $0).hash }
        }
        guard let number else { return }
        // Somebody waits for a key that was asked for. The next ones must not take its place.
        if source == .enrolled { keys.touch(number) }
        if let context = row.context { keys.keep(context, for: number) }
    }
}
