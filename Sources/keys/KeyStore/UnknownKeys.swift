internal import DeviceKey

/// Keys that the journal does not have, remembered for a moment, so that a client which asks again
/// and again costs one question. A key that another gateway enrols meanwhile is found when the
/// moment is over.
struct UnknownKeys {
    /// The most that are remembered. With more, all are forgotten: each then costs a question.
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

    /// Somebody has changed keys.
    mutating func removeAll() { ends.removeAll(keepingCapacity: true) }
}
