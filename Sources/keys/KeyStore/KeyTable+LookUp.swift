package import DeviceKey
internal import Synchronization
internal import Tokens

// Keys that are not in the table, where other gateways enrol keys too.
extension KeyTable {
    /// Looks up a key that was ``Finding/absent``. When the ticket is `admitted`, ``find(_:)``
    /// knows the key, or that there is none.
    ///
    /// - Returns: `nil` when too many look-ups wait.
    package func lookUp(_ keyID: KeyID) -> CommitTicket? {
        if let successor = successor.holder { return lookUp(keyID, by: successor) }
        return committer.lookUp(keyID)
    }

    /// Keeps a key in use from being evicted, where the table has no room for all.
    package func touch(_ keyID: KeyID) {
        guard journal.keysMax != nil, successor.holder == nil else { return }
        let place = Self.place(of: keyID)
        shards[place.shard].keys.withLock { keys in
            if let number = keys.find(keyID, hash: place.hash) { keys.touch(number) }
        }
    }

    /// The finding for a key that is not in the table.
    func missing(_ keyID: KeyID) -> Finding {
        switch decides {
        case .inMemory: .unknown
        case .atCommit: unknown.withLock { $0.contains(keyID) } ? .unknown : .absent
        }
    }

    /// The decision about a key that is not in the table. It was evicted since it was found, and
    /// the journal may still have it.
    func lacking(_ keyID: KeyID) -> ConsumeDecision {
        if case .unknown = missing(keyID) { return .refused(.unknown) }
        return .unavailable
    }

    /// Takes the result of a look-up in the journal.
    func take(_ asked: [KeyID], _ found: [KeyRow]) {
        for row in found { apply(row, .enrolled) }
        let stored = Set(found.lazy.filter { $0.standing != .deleted }.map(\.keyID))
        unknown.withLock { unknown in
            for keyID in asked where !stored.contains(keyID) { unknown.insert(keyID) }
        }
    }
}
