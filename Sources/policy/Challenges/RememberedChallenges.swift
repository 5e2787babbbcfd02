internal import Synchronization

/// Single challenges that are remembered until they expire: a bounded set.
///
/// For the few that ``SpentChallenges`` can't hold, since their serial numbers are of another
/// start, or for which another fact is kept than that they were spent.
final class RememberedChallenges: Sendable {
    enum Addition { case added, present, noRoom }

    /// A challenge, without what its serial number is taken for.
    private struct Place: Hashable {
        let epoch: UInt64
        let number: UInt64
    }

    private struct State: Sendable {
        /// When each expires, in seconds since 1970.
        var expiries: [Place: Int64] = [:]
        /// When what has expired was last looked for.
        var lookedAt: Int64 = .min
    }

    /// Seconds between two looks for what has expired, while there is no room.
    private static let lookSeconds: Int64 = 10
    /// Bytes of one challenge in the dictionary, at its least load.
    static let bytesMax = 64

    /// The most challenges.
    let capacity: Int
    private let state = Mutex(State())

    init(capacity: Int) { self.capacity = capacity }

    /// Bytes that the set takes now.
    var bytes: Int { state.withLock { $0.expiries.capacity * 32 } }

    func contains(_ challenge: ChallengeSerial) -> Bool {
        state.withLock { $0.expiries[Self.place(challenge)] != nil }
    }

    /// Remembers a challenge: `added` for exactly one of all callers.
    func add(_ challenge: ChallengeSerial) -> Addition {
        state.withLock { state in
            let place = Self.place(challenge)
            guard state.expiries[place] == nil else { return .present }
            guard state.expiries.count < capacity else { return .noRoom }
            state.expiries[place] = challenge.expiry
            return .added
        }
    }

    func remove(_ challenge: ChallengeSerial) {
        state.withLock { $0.expiries[Self.place(challenge)] = nil }
    }

    /// Forgets what has expired, if there is no room.
    func makeRoom(now: Int64) {
        state.withLock { state in
            guard state.expiries.count >= capacity else { return }
            // Also where the clock has stepped back.
            let next = state.lookedAt.addingReportingOverflow(Self.lookSeconds)
            guard next.overflow || now >= next.partialValue || now < state.lookedAt else { return }
            state.lookedAt = now
            state.expiries = state.expiries.filter { $0.value > now }
        }
    }

    private static func place(_ challenge: ChallengeSerial) -> Place {
        Place(epoch: challenge.epoch, number: challenge.number)
    }
}
