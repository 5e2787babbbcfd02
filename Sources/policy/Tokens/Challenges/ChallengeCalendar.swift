internal import Encodings

/// The periods in which challenges of one purpose were issued and may still be good.
///
/// A period is closed when all of its challenges have expired, the oldest first, and never opened
/// again.
struct ChallengeCalendar {
    private struct Period {
        let number: UInt64
        /// Seconds since 1970.
        let start: Int64
    }

    /// The most open periods. With a steady clock there are ten. A clock that steps back repeatedly
    /// could make more. Then the oldest period is closed early, and its challenges count as
    /// expired.
    static let periodsMax = 32

    /// Seconds that a challenge is good.
    let lifetime: Int64
    /// Seconds of issuing that a period takes: an eighth of a lifetime, at least a minute, so that
    /// the numbers of periods last for 31 years.
    let length: Int64
    /// Challenges issued in the periods that have ended.
    var issuedBefore: UInt64 = 0
    private var open: [Period] = []

    init(lifetime: Int64) {
        self.lifetime = lifetime
        length = max(lifetime / 8, 60)
    }

    /// The oldest open period; `nil` without one.
    var oldest: UInt64? { open.first?.number }

    /// Opens a period that starts now, and closes the periods that are over.
    ///
    /// - Returns: whether one was closed.
    mutating func begin(_ number: UInt64, now: Int64) -> Bool {
        let count = open.count
        while let first = open.first, open.count >= Self.periodsMax || isOver(first, now: now) {
            open.removeFirst()
        }
        let hasClosed = open.count < count
        open.append(Period(number: number, start: now))
        return hasClosed
    }

    /// Closes the periods that are over, except the current one.
    mutating func close(now: Int64) -> Bool {
        let count = open.count
        while let first = open.first, open.count > 1, isOver(first, now: now) { open.removeFirst() }
        return open.count < count
    }

    /// Writes the state for the successor.
    func write(to out: inout ByteWriter) {
        out.word(issuedBefore)
        out.byte(UInt8(open.count))
        for period in open {
            out.word(period.number)
            out.number(period.start)
        }
    }

    /// Reads the state that the predecessor has written.
    mutating func take(from state: inout ByteReader) throws(ByteReader.Fault) {
        issuedBefore = try state.word()
        let count = Int(try state.byte())
        guard count <= Self.periodsMax else { throw ByteReader.Fault() }
        open = []
        for _ in 0..<count {
            open.append(Period(number: try state.word(), start: Self.moment(try state.number())))
        }
    }

    /// Bounds a second, so that additions and subtractions can't overflow.
    private static func moment(_ second: Int64) -> Int64 { min(max(second, 0), 1 << 60) }

    /// Whether all challenges of a period have expired, by the rule of ``isOver(_:now:)``.
    private func isOver(_ period: Period, now: Int64) -> Bool {
        now - period.start >= length + lifetime || period.start - now > lifetime
    }

    /// Whether a challenge with this expiry is no longer good.
    ///
    /// A challenge whose expiry is more than its whole lifetime ahead was issued before the clock
    /// stepped back. It counts as expired too. Otherwise its period would stay open until the clock
    /// has caught up.
    func isOver(_ expiry: Int64, now: Int64) -> Bool {
        guard now < expiry else { return true }
        let (latest, overflow) = now.addingReportingOverflow(2 * lifetime)
        return !overflow && expiry > latest
    }
}
