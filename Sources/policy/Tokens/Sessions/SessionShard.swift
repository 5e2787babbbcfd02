internal import DeviceKey

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
