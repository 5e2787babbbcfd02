// Sessions: a client opens one with one assertion, then signs many requests with it.
//
//   SessionTable     opens sessions and finds them; shared by the event loops
//   Session          one session: its key, its secret, which of its numbers were used
//   SessionID        the id as its text says it
//   SequenceWindow   the numbers of one session that were used
//
// An id is 33 bytes, sent as 44 characters of base64url:
//
//     offset  bytes  meaning
//     0       1      version, 1
//     1       8      serial number
//     9       8      expiry, seconds since 1970
//     17      16     HMAC-SHA-256 over "portcullis-session-id" and the bytes before, its first half
//
// Numbers are big-endian. The key of the codes is drawn at the start. In an upgrade it goes from
// this process's memory to that of the successor. The secret of a session is HMAC-SHA-256 under the
// same key over "portcullis-session-secret" and the id. The client gets it once, when the session
// is opened.
//
// The promises and what keeps them:
//
// * A sequence number is used once. The lock of its session decides, also when event loops race.
// * Only the secret moves the window: the code of a request is compared before its number is used.
// * After a restart no older session is known: the key is new. After an upgrade all sessions are
//   known, with their used numbers; the old process asks its successor about each.
// * The sessions of a key end with the key: the judge looks it up at each request.
// * Memory is bounded, in total and for each key. The oldest session is evicted, and its client
//   signs with an assertion again.
//
// Memory: a session takes some 600 bytes with a window of 256, so that the default limit of 100,000
// sessions takes at most 60 MB. A window of 4096 takes 500 bytes more.

package import AppAttest
internal import Cryptography
package import DeviceKey
package import Encodings
internal import Synchronization

/// The open sessions. Shared by all event loops.
package final class SessionTable: Sendable {
    /// How long sessions live, and how many there are: `sessions`.
    package struct Limits: Hashable, Sendable {
        /// `lifetime`: seconds that a session is good. Default 10m, 1s…1d. Short: what ends it
        /// early is the revocation of its key.
        package var lifetime: Int64
        /// `window`: how far below the highest a sequence number may be. Default 256, 64…4096. As
        /// many requests of one session may be under way at once.
        package var window: Int
        /// `limit`: sessions in all. Default 100000, 1…1000000; each takes some 600 bytes. A
        /// further one ends the oldest.
        package var sessionsMax: Int

        package init(lifetime: Int64 = 600, window: Int = 256, sessionsMax: Int = 100_000) {
            self.lifetime = lifetime
            self.window = window
            self.sessionsMax = sessionsMax
        }
    }

    /// What a client gets when it opens a session.
    package struct Opened: Sendable {
        /// The id, characters of base64url.
        package let id: [UInt8]
        /// The key of the signatures. Only the client gets it.
        package let secret: SHA256Digest

        package init(id: [UInt8], secret: SHA256Digest) { (self.id, self.secret) = (id, secret) }
    }

    /// The result of a lookup.
    package enum Finding: Sendable {
        case live(Session)
        case unknown(Absence)
        case expired
    }

    /// Why the table has no such session. The raw value is the word in the log.
    package enum Absence: String, Sendable {
        /// This table opened the session, and evicted it to make room.
        case evicted
        /// This table did not open it: another gateway did, or this one before its start, or it is
        /// forged.
        case foreign
    }

    /// The most sessions of one key. Opening another ends its oldest.
    package static let perKeyMax = 4

    static let shardBits: UInt64 = 6
    private static let homeLabel = Array("portcullis-session-home".utf8)

    /// A mutex in a class of its own, so that an array can hold it.
    final class Shard: Sendable {
        let sessions = Mutex(SessionShard())
    }

    package let limits: Limits
    /// The key of ids and secrets. Only the successor gets it.
    let secret: [UInt8]
    let key: HMACSHA256.Key
    let next = Atomic<UInt64>(0)
    let live = Atomic<Int>(0)
    private let evictions = Atomic<UInt64>(0)
    let shards = (0..<1 << shardBits).map { _ in Shard() }

    /// - secret: the key of ids and secrets. Without one, the table draws a key. That key goes from
    ///   this process's memory to that of its successor alone, and dies with them.
    package init(_ limits: Limits = Limits(), secret: [UInt8]? = nil) {
        precondition(limits.sessionsMax >= 1, "SessionTable: room for one at least")
        precondition(limits.lifetime >= 1 && limits.lifetime <= 1 << 32, "SessionTable: lifetime")
        self.limits = limits
        let secret = secret ?? RandomBytes.make(count: 32)
        self.secret = secret
        key = HMACSHA256.Key(secret.span)
    }

    /// Opens a session for a key that has just signed this.
    ///
    /// - now: the wall clock, seconds since 1970; taken as 0…2⁶⁰.
    package func open(_ keyID: KeyID, _ evidence: VerifiedEvidence, now: Int64) -> Opened {
        let now = Self.bounded(now)
        let home = home(of: keyID)
        let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
        let id = SessionID(
            serial: number << Self.shardBits | UInt64(home),
            expiry: now + limits.lifetime,
            key: key
        )
        let session = session(
            id,
            window: SequenceWindow(width: limits.window),
            of: keyID,
            by: evidence
        )
        makeRoom(in: home, now: now)
        keep(session)
        return Opened(id: id.text, secret: id.secret(under: key))
    }

    /// A session that is over now: its client opens another.
    package func over(now: Int64) -> Opened {
        let id = SessionID(serial: 0, expiry: Self.bounded(now), key: key)
        return Opened(id: id.text, secret: id.secret(under: key))
    }

    /// A key's sessions are in one shard, so one lock is enough to count them. The successor uses
    /// the same shard. No client knows which one.
    private func home(of keyID: KeyID) -> Int {
        let code = key.code(Self.homeLabel.span, keyID.bytes.span)
        return Int(code.firstWord >> (64 - Self.shardBits))
    }

    func session(
        _ id: SessionID,
        window: SequenceWindow,
        of keyID: KeyID,
        by evidence: VerifiedEvidence
    ) -> Session {
        let secret = id.secret(under: key)
        return Session(id, secret, window: window, keyID: keyID, evidence: evidence)
    }

    /// A session that another process with this table's key has. Its window stays empty here: the
    /// other process has the one that decides.
    package func session(
        heldElsewhere id: [UInt8],
        of keyID: KeyID,
        by evidence: VerifiedEvidence
    ) -> Session? {
        SessionID(bytes: id).map {
            session($0, window: SequenceWindow(width: 1), of: keyID, by: evidence)
        }
    }

    /// Keeps a session that is counted in ``live``.
    func keep(_ session: Session) {
        let isReplacing = shard(of: session.id).sessions.withLock {
            $0.insert(session, perKeyMax: Self.perKeyMax)
        }
        if isReplacing { ended(evicted: true) }
    }

    func shard(of id: SessionID) -> Shard { shards[Int(id.serial & (1 << Self.shardBits - 1))] }

    /// Finds a session.
    ///
    /// - text: what the client sent as the id.
    /// - now: the wall clock, seconds since 1970.
    package func find(_ text: Span<UInt8>, now: Int64) -> Finding {
        guard let id = SessionID(text: text) else { return .unknown(.foreign) }
        let now = Self.bounded(now)
        guard let session = shard(of: id).sessions.withLock({ $0.find(id.serial) }) else {
            guard id.isAuthentic(under: key) else { return .unknown(.foreign) }
            return now >= id.expiry ? .expired : .unknown(.evicted)
        }
        guard session.id.isEqual(id) else { return .unknown(.foreign) }
        return session.isOver(at: now) ? .expired : .live(session)
    }

    /// The session of an id's bytes, whatever the clock says.
    package func live(_ id: [UInt8]) -> Session? {
        guard let id = SessionID(bytes: id) else { return nil }
        let session = shard(of: id).sessions.withLock { $0.find(id.serial) }
        return session.flatMap { $0.id.isEqual(id) ? $0 : nil }
    }

    /// Sessions that are open.
    ///
    /// - now: the wall clock, seconds since 1970.
    package func count(now: Int64) -> Int {
        for shard in shards { removeOver(in: shard, Self.bounded(now)) }
        return live.load(ordering: .relaxed)
    }

    /// Sessions that were opened since the start.
    package var opened: UInt64 { next.load(ordering: .relaxed) }

    /// Sessions that were evicted to make room for another.
    package var evicted: UInt64 { evictions.load(ordering: .relaxed) }

    /// Takes a place for one more session. Where there is none, evicts the oldest of all.
    private func makeRoom(in home: Int, now: Int64) {
        removeOver(in: shards[home], now)
        while live.wrappingAdd(1, ordering: .relaxed).oldValue >= limits.sessionsMax {
            ended(evicted: false)
            endOldest(now: now)
        }
    }

    /// Ends the session that was opened first: serial numbers rise over all shards. It checks the
    /// first of each shard, which takes one or two microseconds. The assertion took eighty.
    ///
    /// Another event loop may end the same session meanwhile; then none ends here.
    func endOldest(now: Int64) {
        var found: (shard: Shard, serial: UInt64)?
        for shard in shards {
            guard let serial = shard.sessions.withLock({ $0.oldestSerial() }),
                found.map({ serial < $0.serial }) ?? true
            else { continue }
            found = (shard, serial)
        }
        guard let (shard, serial) = found,
            let session = shard.sessions.withLock({ $0.remove(serial) })
        else { return }
        ended(evicted: !session.isOver(at: now))
    }

    private func ended(evicted: Bool) {
        live.wrappingSubtract(1, ordering: .relaxed)
        if evicted { evictions.wrappingAdd(1, ordering: .relaxed) }
    }

    private func removeOver(in shard: Shard, _ now: Int64) {
        let removed = shard.sessions.withLock { $0.removeOver(now: now) }
        live.wrappingSubtract(removed, ordering: .relaxed)
    }

    /// Bounds a time, so that additions can't overflow.
    static func bounded(_ now: Int64) -> Int64 { min(max(now, 0), 1 << 60) }
}

// Hand-over to the successor: the open sessions and their used numbers.
extension SessionTable {
    private static let version: UInt8 = 1

    /// The state that the successor needs. A reader of it can sign for every client, so it goes to
    /// that process and nowhere else. Afterwards only the successor may open sessions and use
    /// numbers.
    package var state: [UInt8] {
        var out = ByteWriter()
        out.byte(Self.version)
        out.block(secret)
        out.word(next.load(ordering: .relaxed))
        for shard in shards {
            for session in shard.sessions.withLock({ $0.all }) {
                out.byte(1)
                out.block(session.id.bytes)
                out.block(session.keyID.bytes)
                session.evidence.write(to: &out)
                session.writeWindow(to: &out)
            }
        }
        out.byte(0)
        return out.bytes
    }

    /// A table that continues where another process has stopped.
    ///
    /// - `limits`: may differ from those of that process. Sessions end when their ids say so. Where
    ///   there is room for fewer, the oldest are evicted.
    /// - `state`: of that process.
    package convenience init(
        _ limits: Limits = Limits(),
        goingOnFrom state: [UInt8]
    ) throws(ByteReader.Fault) {
        var state = ByteReader(state)
        guard try state.byte() == Self.version else { throw ByteReader.Fault() }
        let secret = try state.block(max: 32)
        guard secret.count == 32 else { throw ByteReader.Fault() }
        self.init(limits, secret: secret)
        next.store(try state.word(), ordering: .relaxed)
        while try state.flag() { try take(from: &state) }
        try state.end()
        while live.load(ordering: .relaxed) > limits.sessionsMax { endOldest(now: 0) }
    }

    private func take(from state: inout ByteReader) throws(ByteReader.Fault) {
        guard let id = SessionID(bytes: try state.block(max: SessionID.byteCount)),
            let keyID = KeyID(bytes: try state.block(max: 32))
        else { throw ByteReader.Fault() }
        let evidence = try VerifiedEvidence(from: &state)
        let window = try SequenceWindow(width: limits.window, from: &state)
        // A serial number that came twice would be counted twice.
        guard shard(of: id).sessions.withLock({ $0.find(id.serial) }) == nil else {
            throw ByteReader.Fault()
        }
        live.wrappingAdd(1, ordering: .relaxed)
        keep(session(id, window: window, of: keyID, by: evidence))
    }
}

/// The sessions of some keys: one part of a ``SessionTable``.
struct SessionShard: Sendable {
    private var sessions: [UInt64: Session] = [:]
    /// The serial numbers of each key's sessions, in the order in which they were opened.
    private var serials: [KeyID: [UInt64]] = [:]
    /// All serial numbers in that order, from `oldest`. Some sessions have left `sessions` early.
    private var order: [UInt64] = []
    private var oldest = 0

    /// The most serial numbers in ``order`` without a live session.
    private static let idleMax = 64

    var count: Int { sessions.count }

    func find(_ serial: UInt64) -> Session? { sessions[serial] }

    /// All sessions, in the order in which they were opened.
    var all: [Session] { order[oldest...].compactMap { sessions[$0] } }

    /// Adds a session. Where its key has the most sessions allowed, the oldest of them ends; says
    /// whether one did.
    mutating func insert(_ session: Session, perKeyMax: Int) -> Bool {
        let own = serials[session.keyID] ?? []
        let isReplacing = own.count >= perKeyMax && own.first.map { remove($0) != nil } ?? false
        sessions[session.id.serial] = session
        serials[session.keyID, default: []].append(session.id.serial)
        compact()
        order.append(session.id.serial)
        return isReplacing
    }

    /// Ends a session and returns it; `nil` when it was not there.
    @discardableResult
    mutating func remove(_ serial: UInt64) -> Session? {
        guard let session = sessions.removeValue(forKey: serial) else { return nil }
        serials[session.keyID]?.removeAll { $0 == serial }
        if serials[session.keyID]?.isEmpty == true { serials[session.keyID] = nil }
        return session
    }

    /// The serial number of the session that was opened first; `nil` without one.
    mutating func oldestSerial() -> UInt64? {
        while oldest < order.count {
            if sessions[order[oldest]] != nil { return order[oldest] }
            oldest += 1
        }
        return nil
    }

    /// Ends the expired sessions at the front; returns their number.
    ///
    /// All sessions live equally long. Where the clock has stepped back, an expired session may
    /// follow a live one in the order. It stays until the live one has expired too.
    mutating func removeOver(now: Int64) -> Int {
        var removed = 0
        while oldest < order.count {
            if let session = sessions[order[oldest]] {
                guard session.isOver(at: now) else { break }
                remove(order[oldest])
                removed += 1
            }
            oldest += 1
        }
        return removed
    }

    /// Removes the serial numbers without a session, once they are as many as the live ones.
    private mutating func compact() {
        guard order.count > 2 * sessions.count + Self.idleMax else { return }
        order = order[oldest...].filter { sessions[$0] != nil }
        oldest = 0
    }
}
