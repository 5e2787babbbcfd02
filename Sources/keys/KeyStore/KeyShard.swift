internal import Cryptography
internal import DeviceKey
internal import Tokens

/// The keys of one shard: an index with open addressing over entries that never move.
///
/// The index is hashed with a seed of the process. So imported key ids, which need not be digests,
/// can't be made to collide.
struct KeyShard {
    /// Entries of one piece: 8 KiB. Pieces are never copied to grow.
    private static let pieceCount = 64

    /// A place of the index: empty, or an entry's number with eight bits of its hash. With those
    /// bits a search avoids reading the entries of other keys, which would be cache misses.
    private struct Place {
        static let countMax = 1 << 24 - 1
        private static let tag: UInt32 = 0xFF00_0000

        /// The bits of the hash, then one more than the number; 0 when it is empty.
        private let rawValue: UInt32

        static let empty = Place(rawValue: 0)

        private init(rawValue: UInt32) { self.rawValue = rawValue }

        /// - `number`: less than ``countMax``.
        init(number: Int, hash: UInt32) { rawValue = hash & Self.tag | UInt32(number + 1) }

        var isEmpty: Bool { rawValue == 0 }
        var number: Int { Int(rawValue & ~Self.tag) - 1 }

        func mayHold(_ hash: UInt32) -> Bool { (rawValue ^ hash) & Self.tag == 0 }
    }

    /// The most entries. When the shard is full, a new entry evicts one that was not looked up for
    /// a while (the clock algorithm). A hand goes round, skips the entries that were looked up
    /// since its last round, and takes the next one. So a lookup writes one bit and moves nothing.
    let countMax: Int
    private var hand = 0

    /// A power of two, at most 7/10 full.
    private var index = [Place](repeating: .empty, count: 16)
    private var pieces: [[KeyEntry]] = []
    private(set) var count = 0
    /// Entries that are revoked.
    private(set) var revokedCount = 0
    /// Entries that are deleted: their places become free at the next start.
    private(set) var deletedCount = 0
    /// The contexts of the keys that have one, by the number of their entry. They are stored
    /// separately, so that keys without one take no memory for it.
    private var contexts: [Int: [UInt8]] = [:]
    private var contextBytes = 0
    /// The standing that others have given to keys that are not here, as read last. A row of such
    /// a key that was read before that, for a request, may still come.
    private var passed: [KeyID: KeyStanding] = [:]
    /// The same, of changes that were read before.
    private var passedBefore: [KeyID: KeyStanding] = [:]
    /// The least number of changes that are kept so. A row comes a few seconds late at most.
    private static let passedCount = 256

    init(countMax: Int = .max) { self.countMax = countMax }

    /// Whether a new entry evicts another one.
    var isFull: Bool { count >= countMax }

    /// Bytes that the index, the entries and the contexts take.
    var bytes: Int {
        index.count * MemoryLayout<Place>.stride
            + pieces.count * Self.pieceCount * MemoryLayout<KeyEntry>.stride
            + contextBytes
    }

    /// The facts of an entry for the verifier.
    func stored(_ number: Int) -> StoredKey {
        let entry = self[number]
        return entry.stored(context: entry.hasContext ? contexts[number] : nil)
    }

    /// Keeps a context of an entry that has none.
    mutating func keep(_ context: [UInt8], for number: Int) {
        guard !self[number].hasContext else { return }
        self[number].hasContext = true
        contexts[number] = context
        contextBytes += Self.bytes(of: context)
    }

    /// An array's header takes 32 bytes, a place of the dictionary up to 32.
    private static func bytes(of context: [UInt8]) -> Int { context.count + 64 }

    /// The number of a key's entry; `nil` when it is not here.
    ///
    /// - `hash`: the key id's hash, of which the upper half chose the shard.
    func find(_ id: KeyID, hash: UInt32) -> Int? {
        let mask = index.count - 1
        var place = Int(hash) & mask
        // An index is never full, so that there is an empty place to stop at.
        while !index[place].isEmpty {
            let number = index[place].number
            if index[place].mayHold(hash), self[number].id == id { return number }
            place = (place + 1) & mask
        }
        return nil
    }

    /// Others have changed a key that is not here, and its row is not taken.
    mutating func pass(_ id: KeyID, _ standing: KeyStanding) {
        if passed.count >= Self.passedCount { (passed, passedBefore) = ([:], passed) }
        passed[id] = standing
    }

    /// Others have changed a key again.
    mutating func forgetPassed(_ id: KeyID) {
        if !passed.isEmpty { passed[id] = nil }
        if !passedBefore.isEmpty { passedBefore[id] = nil }
    }

    /// What ``pass(_:_:)`` was told last of a key; `nil` for nothing.
    func passedStanding(of id: KeyID) -> KeyStanding? { passed[id] ?? passedBefore[id] }

    /// Adds a key that is not here.
    mutating func insert(_ entry: KeyEntry, hash: UInt32, rehash: (KeyID) -> UInt32) {
        precondition(count < Place.countMax, "KeyShard: more keys than an index can number")
        if (count + 1) * 10 > index.count * 7 { grow(rehash) }
        if count % Self.pieceCount == 0 {
            var piece: [KeyEntry] = []
            piece.reserveCapacity(Self.pieceCount)
            pieces.append(piece)
        }
        pieces[pieces.count - 1].append(entry)
        count += 1
        tally(entry.standing, 1)
        place(number: count - 1, hash: hash)
    }

    /// An entry was looked up.
    mutating func touch(_ number: Int) {
        guard countMax < .max else { return }
        self[number].isRecent = true
    }

    /// Adds a key that is not here, and evicts another one.
    ///
    /// - `keepsAhead`: whether entries with uses that the journal may not know must stay.
    /// - Returns: its number; `nil` where all entries must stay.
    mutating func replace(
        with entry: KeyEntry,
        hash: UInt32,
        keepsAhead: Bool,
        rehash: (KeyID) -> UInt32
    ) -> Int? {
        // After one round none is recent any more.
        for _ in 0..<2 * count {
            let number = hand
            hand = (hand + 1) % count
            if self[number].isRecent {
                self[number].isRecent = false
            } else if !keepsAhead || !self[number].isAhead {
                dropContext(of: number)
                tally(self[number].standing, -1)
                vacate(number, rehash)
                self[number] = entry
                tally(entry.standing, 1)
                place(number: number, hash: hash)
                return number
            }
        }
        return nil
    }

    /// Removes an entry from the index. Those after it move up, so that no search stops early.
    private mutating func vacate(_ number: Int, _ rehash: (KeyID) -> UInt32) {
        let mask = index.count - 1
        var hole = Int(rehash(self[number].id)) & mask
        while index[hole].number != number {
            precondition(!index[hole].isEmpty, "KeyShard: an entry that is not in the index")
            hole = (hole + 1) & mask
        }
        var next = (hole + 1) & mask
        while !index[next].isEmpty {
            let home = Int(rehash(self[index[next].number].id)) & mask
            if (next - home) & mask >= (next - hole) & mask {
                index[hole] = index[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        index[hole] = .empty
    }

    /// Sets the standing that a command gave to an entry. A deleted entry stays deleted, and
    /// nothing but its id is left of the key.
    mutating func set(_ standing: KeyStanding, of number: Int) {
        let before = self[number].standing
        guard before != .deleted else { return }
        tally(before, -1)
        tally(standing, 1)
        self[number].standing = standing
        guard standing == .deleted else { return }
        dropContext(of: number)
        self[number].erase()
    }

    /// Deletes those of these erased keys that are here.
    ///
    /// - rows: by their numbers.
    mutating func erase(_ rows: [Int64: KeyRow]) {
        for number in 0..<count {
            guard let row = rows[self[number].row], row.isErasure(of: self[number].id) else {
                continue
            }
            set(.deleted, of: number)
        }
    }

    private mutating func dropContext(of number: Int) {
        guard let context = contexts.removeValue(forKey: number) else { return }
        self[number].hasContext = false
        contextBytes -= Self.bytes(of: context)
    }

    private mutating func tally(_ standing: KeyStanding, _ change: Int) {
        switch standing {
        case .active: break
        case .revoked: revokedCount += change
        case .deleted: deletedCount += change
        }
    }

    subscript(number: Int) -> KeyEntry {
        get { pieces[number / Self.pieceCount][number % Self.pieceCount] }
        _modify { yield &pieces[number / Self.pieceCount][number % Self.pieceCount] }
    }

    private mutating func place(number: Int, hash: UInt32) {
        let mask = index.count - 1
        var place = Int(hash) & mask
        while !index[place].isEmpty { place = (place + 1) & mask }
        index[place] = Place(number: number, hash: hash)
    }

    private mutating func grow(_ rehash: (KeyID) -> UInt32) {
        index = [Place](repeating: .empty, count: index.count * 2)
        for number in 0..<count { place(number: number, hash: rehash(self[number].id)) }
    }
}

/// One key in memory: 128 bytes with its padding.
struct KeyEntry {
    /// Flags in one byte, since no other is free.
    private struct Marks: OptionSet {
        let rawValue: UInt8

        static let hasContext = Marks(rawValue: 1)
        static let lostAnchor = Marks(rawValue: 2)
        static let isRecent = Marks(rawValue: 4)
        static let isAhead = Marks(rawValue: 8)
        static let isAndroid = Marks(rawValue: 16)
    }

    let id: KeyID
    var row: Int64
    var counters: CounterState
    let app: AppNumber
    // Small values fill the four bytes before the key, whose words begin at a multiple of eight.
    var risk: KeyRisk
    let environment: KeyEnvironment
    var standing: KeyStanding
    private var marks: Marks
    private(set) var publicKey: P256PublicKey

    init(_ row: KeyRow) {
        id = row.keyID
        self.row = row.row
        counters = row.counters
        app = row.app
        publicKey = row.publicKey
        risk = row.risk
        environment = row.environment
        standing = row.standing
        marks = row.anchor == .lost ? .lostAnchor : []
        if row.platform == .android { marks.insert(.isAndroid) }
    }

    /// Whether the shard has a context of this key.
    var hasContext: Bool {
        get { marks.contains(.hasContext) }
        set { if newValue { marks.insert(.hasContext) } else { marks.remove(.hasContext) } }
    }

    /// Whether it was looked up since the clock hand of a bounded shard passed.
    var isRecent: Bool {
        get { marks.contains(.isRecent) }
        set { if newValue { marks.insert(.isRecent) } else { marks.remove(.isRecent) } }
    }

    /// Whether a use was decided here that the journal may not know yet.
    var isAhead: Bool {
        get { marks.contains(.isAhead) }
        set { if newValue { marks.insert(.isAhead) } else { marks.remove(.isAhead) } }
    }

    /// Whether the counters are known to be the last ones.
    var anchor: CounterAnchor { marks.contains(.lostAnchor) ? .lost : .held }

    /// Removes what is known of a deleted key. The id stays: its place in the index can't be freed
    /// while searches pass it, and a row of the key that was read before may still come.
    mutating func erase() {
        publicKey = .ofErasedKeys
        counters = CounterState()
        risk = .unknown
    }

    /// The counters are known to be the last ones.
    mutating func hold() { marks.remove(.lostAnchor) }

    func stored(context: [UInt8]?) -> StoredKey {
        StoredKey(
            platform: marks.contains(.isAndroid) ? .android : .apple,
            publicKey: publicKey,
            app: app,
            environment: environment,
            counters: counters,
            isRevoked: standing == .revoked,
            context: context,
            risk: risk,
            anchor: anchor,
            row: row
        )
    }

    /// Why the counter can't be used; `nil` when it is free.
    ///
    /// Without a counter the challenge makes a use good once. Without both, a replay can't be
    /// detected, so every use counts as one.
    func refusal(
        _ counter: SignCounter?,
        _ rule: StoreCounterRule,
        hasChallenge: Bool
    ) -> ConsumeRefusal? {
        switch standing {
        case .active: break
        case .revoked: return .revoked
        case .deleted: return .unknown
        }
        guard let counter else { return hasChallenge ? nil : .replayed }
        switch anchor {
        case .held: return counters.admits(counter, rule) ? nil : .replayed
        case .lost:
            // Counters up to the highest known one were signed before the copy.
            guard counters.admits(counter, .strict) else { return .replayed }
            return hasChallenge ? nil : .unanchored
        }
    }

    /// Spends the challenge, then uses the counter, which is free: both or neither.
    ///
    /// - `now`: second of Unix time.
    mutating func use(
        _ counter: SignCounter?,
        challenge: ChallengeSerial?,
        issuer: ChallengeIssuer,
        now: Int64
    ) -> Result<CounterChange, ConsumeRefusal> {
        switch challenge.map(issuer.spend) ?? .spent {
        case .spent: break
        case .spentBefore: return .failure(.challengeSpent)
        case .noRoom: return .failure(.challengesExhausted)
        }
        if let counter {
            counters.use(counter)
            // Any counter below may have been used after the copy.
            if anchor == .lost { counters.merge(CounterState(highest: counter, seen: .max)) }
        }
        hold()
        isAhead = true
        return .success(CounterChange(row: row, counters: counters, usedAt: now))
    }
}
