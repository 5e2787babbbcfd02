internal import AppAttest
internal import Cryptography

/// One key in memory: 128 octets with its padding.
struct KeyEntry {
    let id: KeyID
    let row: Int64
    var counters: CounterState
    let app: AppNumber
    let publicKey: P256.PublicKey
    let environment: KeyEnvironment
    var isRevoked: Bool

    init(_ row: KeyRow) {
        id = row.keyID
        self.row = row.row
        counters = row.counters
        app = row.app
        publicKey = row.publicKey
        environment = row.environment
        isRevoked = row.isRevoked
    }

    var stored: StoredKey {
        StoredKey(
            publicKey: publicKey,
            app: app,
            environment: environment,
            counters: counters,
            isRevoked: isRevoked
        )
    }
}

/// The keys of one shard: an index with open addressing over entries that never move.
///
/// The index is hashed with a seed of the process, so that imported key ids, which need not be
/// digests, can't be made to collide.
struct KeyShard {
    /// Entries of one piece: 8 KiB. Pieces are never copied to grow.
    private static let pieceCount = 64

    /// One more than an entry's number; 0 for an empty place. A power of two, at most 7/10 full.
    private var index = [UInt32](repeating: 0, count: 16)
    private var pieces: [[KeyEntry]] = []
    private(set) var count = 0
    /// Entries that are revoked.
    private(set) var revokedCount = 0

    /// Octets that the index and the entries take.
    var octets: Int {
        index.count * 4 + pieces.count * Self.pieceCount * MemoryLayout<KeyEntry>.stride
    }

    /// The number of a key's entry; `nil` when it is not here.
    ///
    /// - `hash`: the key id's hash, of which the upper half chose the shard.
    func find(_ id: KeyID, hash: UInt32) -> Int? {
        let mask = index.count - 1
        var place = Int(hash) & mask
        // An index is never full, so that there is an empty place to stop at.
        while index[place] != 0 {
            let number = Int(index[place]) - 1
            if self[number].id == id { return number }
            place = (place + 1) & mask
        }
        return nil
    }

    /// Adds a key that is not here.
    mutating func insert(_ entry: KeyEntry, hash: UInt32, rehash: (KeyID) -> UInt32) {
        precondition(count < Int(UInt32.max), "KeyShard: more keys than an index can number")
        if (count + 1) * 10 > index.count * 7 { grow(rehash) }
        if count % Self.pieceCount == 0 {
            var piece: [KeyEntry] = []
            piece.reserveCapacity(Self.pieceCount)
            pieces.append(piece)
        }
        pieces[pieces.count - 1].append(entry)
        count += 1
        if entry.isRevoked { revokedCount += 1 }
        place(number: count - 1, hash: hash)
    }

    /// Revokes an entry; nothing undoes it.
    mutating func revoke(_ number: Int) {
        if !self[number].isRevoked { revokedCount += 1 }
        self[number].isRevoked = true
    }

    subscript(number: Int) -> KeyEntry {
        get { pieces[number / Self.pieceCount][number % Self.pieceCount] }
        _modify { yield &pieces[number / Self.pieceCount][number % Self.pieceCount] }
    }

    private mutating func place(number: Int, hash: UInt32) {
        let mask = index.count - 1
        var place = Int(hash) & mask
        while index[place] != 0 { place = (place + 1) & mask }
        index[place] = UInt32(number + 1)
    }

    private mutating func grow(_ rehash: (KeyID) -> UInt32) {
        index = [UInt32](repeating: 0, count: index.count * 2)
        for number in 0..<count { place(number: number, hash: rehash(self[number].id)) }
    }
}
